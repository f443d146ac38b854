import type { ReadSecret, SecretObject } from './secrets.ts';

/** Bound of what is remembered, oldest first out: more Secrets than that are not named within one `shareMs`. */
const MAX_READS = 1_000;

/**
 * One read for all that ask for the same Secret within `shareMs`: a run asks for the same few several times between
 * its admission and its first model call. Only what is there is shared; what is missing or cannot be read is asked
 * again at once.
 */
export function sharedReads(read: ReadSecret, shareMs: number, monotonicMs: () => number): ReadSecret {
  const reads = new Map<
    string,
    { readonly since: number; readonly found: Promise<SecretObject | undefined> }
  >();
  return (namespace, name) => {
    const key = `${namespace}/${name}`;
    const known = reads.get(key);
    if (known !== undefined && monotonicMs() - known.since < shareMs) return known.found;
    const found = read(namespace, name);
    const entry = { since: monotonicMs(), found };
    const drop = (): void => {
      if (reads.get(key) === entry) reads.delete(key);
    };
    reads.delete(key);
    reads.set(key, entry);
    for (const oldest of reads.keys()) {
      if (reads.size <= MAX_READS) break;
      reads.delete(oldest);
    }
    found.then((secret) => secret ?? drop(), drop);
    return found;
  };
}
