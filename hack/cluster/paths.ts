import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Where one line of progress goes; never contains a secret. */
export type Log = (line: string) => void;

/** Everything built or downloaded once, and the state of running clusters, lives below this directory. */
export function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'hummingbird-operator');
}

/** Directory of all clusters' state; one folder per cluster name. */
export function clustersRoot(): string {
  return join(cacheRoot(), 'clusters');
}

/** The state directory of the cluster `name`. Throws when the name could leave the directory or a cgroup path. */
export function clusterDir(name: string): string {
  if (!/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/.test(name)) {
    throw new Error(
      `cluster name "${name}": use 1 to 40 of a-z, 0-9 and "-", beginning and ending with a letter or digit`,
    );
  }
  return resolve(clustersRoot(), name);
}

/** Eight hex digits that tell clusters apart where names are short (network interfaces: 15 characters). */
export function shortId(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}
