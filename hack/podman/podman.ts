import { basename, join } from 'node:path';
import { ensureImages } from '../cluster/image.ts';
import { withLock } from '../cluster/lock.ts';
import { sandboxImage } from '../cluster/node.ts';
import { installMissing } from '../cluster/packages.ts';
import { cacheRoot, type Log } from '../cluster/paths.ts';
import { run } from '../cluster/run.ts';

/** Debian recommends the parts that rootless use needs; as root runc alone will do. */
const needs = [
  { anyOf: ['podman'], package: 'podman' },
  { anyOf: ['runc', 'crun'], package: 'runc' },
];

/** Installs podman where it is missing and loads the sandbox image into it; returns the image's name. Needs root. */
export async function ensurePodman(log: Log): Promise<string> {
  await installMissing(needs, log);
  const { sandbox } = await ensureImages(log);
  // The archive's name changes with its content; a tag remembers which one was loaded.
  const loaded = `localhost/hummingbird-${basename(sandbox, '.tar')}:1`;
  await withLock(join(cacheRoot(), 'podman.lock'), 'loading the sandbox image into podman', log, async () => {
    if ((await run(['podman', 'images', '--quiet', loaded])).trim() !== '') return;
    log('loading the sandbox image into podman');
    await run(['podman', 'load', '--quiet', '--input', sandbox]);
    await run(['podman', 'tag', sandboxImage, loaded]);
  });
  return sandboxImage;
}
