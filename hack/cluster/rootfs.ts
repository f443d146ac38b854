import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { present } from './packages.ts';
import type { Log } from './paths.ts';
import { run } from './run.ts';
import type { TarEntry } from './tar.ts';

/**
 * Downloads Debian packages and all they depend on into `directory` (once) and returns the sorted file names.
 * apt is told that nothing is installed, so that it names the whole set whatever the machine has.
 */
export async function downloadPackages(
  directory: string,
  packages: readonly string[],
  log: Log,
  what = 'the sandbox image, once (some 30 MB)',
): Promise<readonly string[]> {
  if (!existsSync(directory)) {
    if (!present('apt-get') || !present('dpkg-deb')) {
      throw new Error(
        `missing on this machine: apt-get and dpkg-deb; Debian packages are needed for ${what}`,
      );
    }
    log(`downloading the Debian packages of ${what}`);
    const work = `${directory}.partial`;
    rmSync(work, { recursive: true, force: true });
    mkdirSync(join(work, 'partial'), { recursive: true });
    const status = `${directory}.status`;
    writeFileSync(status, '');
    const download = [
      ...['apt-get', '-q', '-y', '--no-install-recommends', '--download-only'],
      ...['-o', `Dir::State::status=${status}`, '-o', `Dir::Cache::archives=${work}`],
      ...['-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User=root', 'install', ...packages],
    ];
    // A stale or empty package list is the usual reason to fail; refreshing it helps then.
    await run(download).catch(async () => {
      await run(['apt-get', 'update', '-q']);
      await run(download);
    });
    rmSync(status);
    renameSync(work, directory);
  }
  return readdirSync(directory)
    .filter((file) => file.endsWith('.deb'))
    .sort();
}

/** Unpacks packages into an empty root file system with merged /usr, without running their scripts. */
export async function unpackPackages(root: string, debs: readonly string[]): Promise<void> {
  rmSync(root, { recursive: true, force: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  for (const deb of debs) {
    // Packages still carry /bin and /lib; the links must survive them.
    const unpack = 'dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink';
    await run(['/bin/bash', '-o', 'pipefail', '-c', unpack, 'unpack', deb, root]);
  }
}

/** The tree below `root` as archive entries in a fixed order, without what `skip` matches (paths without leading slash). */
export function* treeEntries(root: string, skip: (path: string) => boolean, below = ''): Generator<TarEntry> {
  for (const base of readdirSync(join(root, below)).sort()) {
    const name = below === '' ? base : `${below}/${base}`;
    if (skip(name)) continue;
    const path = join(root, name);
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) yield { kind: 'symlink', name, target: readlinkSync(path) };
    else if (stat.isDirectory()) {
      yield { kind: 'directory', name, mode: stat.mode & 0o7777 };
      yield* treeEntries(root, skip, name);
    } else if (stat.isFile()) {
      // Nothing in a sandbox runs as another user, so no file keeps a set-uid or set-gid bit.
      yield { kind: 'file', name, mode: stat.mode & 0o777, content: { path } };
    }
  }
}
