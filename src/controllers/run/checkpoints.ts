import { type Checkpoint, checkpointBytes, parseCheckpoint } from '../../agent/checkpoint.ts';
import type { ObjectStore } from '../../store/port.ts';
import { bytesOf, type CheckpointRef, runPrefix } from './result.ts';

/** Somebody else wrote this sequence: another holder has the run, and this process must let go of it. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

/**
 * The run's conversation as immutable numbered objects. Writing a number that exists fails, which is what
 * keeps two holders from going on side by side, also when both would write the same bytes. A write of our own whose
 * answer was lost does not look like that: the store knows its own writes again. Throws FencedError, StoreError.
 */
export async function saveCheckpoint(
  store: ObjectStore,
  runUid: string,
  state: Checkpoint,
  signal?: AbortSignal,
): Promise<CheckpointRef> {
  const key = `${prefix(runUid)}${String(state.sequence).padStart(6, '0')}.json`;
  const put = await store.put(key, checkpointBytes(state), {
    ifNoneMatch: true,
    contentType: 'application/json',
    ...(signal === undefined ? {} : { signal }),
  });
  if (put.kind !== 'Stored')
    throw new FencedError(`${store.location}${key} was written by another holder of the run`);
  return { sequence: state.sequence, key };
}

/** The newest checkpoint in the store, whatever the status says: it may be older than the store. */
export async function newestCheckpoint(
  store: ObjectStore,
  runUid: string,
): Promise<{ readonly ref: CheckpointRef; readonly state: Checkpoint } | undefined> {
  let newest: string | undefined;
  for await (const key of store.list(prefix(runUid))) if (newest === undefined || key > newest) newest = key;
  if (newest === undefined) return undefined;
  const stored = await store.get(newest);
  if (stored === undefined) return undefined;
  const state = parseCheckpoint(JSON.parse((await bytesOf(stored)).toString('utf8')));
  return { ref: { sequence: state.sequence, key: newest }, state };
}

const prefix = (runUid: string): string => `${runPrefix(runUid)}/checkpoints/`;
