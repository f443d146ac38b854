import { gzipSync } from 'node:zlib';
import { type TarFile, writeTar } from './tar.ts';

/** A `.tgz` of a chart, as helm packs one: all files below one directory. Same files, same bytes. */
export function packChart(directory: string, files: readonly TarFile[]): Uint8Array {
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
  // Fast: it goes no further than the sandbox.
  return gzipSync(writeTar(sorted.map(({ path, bytes }) => ({ path: `${directory}/${path}`, bytes }))), {
    level: 1,
  });
}
