import { posix } from 'node:path';
import { SCRATCH } from '../port.ts';

/** A path that no sandbox file operation takes. The message is fit for the model. */
export class PathRefusedError extends Error {
  override readonly name = 'PathRefusedError';
}

/** Linux's PATH_MAX with its final NUL. */
const MAX_PATH_BYTES = 4095;

/**
 * The path of a file below SCRATCH, without double slashes and dots. What stands behind a symbolic link is not
 * looked at: it is inside the sandbox, which holds nothing to protect from its own commands.
 */
export function scratchPath(path: string): string {
  const refuse = (why: string) => new PathRefusedError(`path ${JSON.stringify(path.slice(0, 200))}: ${why}`);
  if (path.includes('\0')) throw refuse('a NUL byte is in no file name');
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw refuse(`longer than ${MAX_PATH_BYTES} bytes`);
  if (path.split('/').includes('..')) throw refuse('".." is not allowed');
  const normal = posix.normalize(path);
  if (!normal.startsWith(`${SCRATCH}/`)) throw refuse(`only files below ${SCRATCH}/ can be used`);
  if (normal.endsWith('/')) throw refuse('it names a directory');
  return normal;
}
