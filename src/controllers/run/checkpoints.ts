import { type Checkpoint, parseCheckpoint } from '../../agent/checkpoint.ts';
import type { ObjectStore, StoredObject } from '../../store/port.ts';
import { type CheckpointRef, runPrefix } from './result.ts';

/** Somebody else wrote this sequence: another holder has the run, and this process must let go of it. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

/**
 * The run's conversation as immutable numbered objects. Writing a number that exists fails, which is what
 * keeps two holders from going on side by side where the store enforces `If-None-Match`.
 */
export async function saveCheckpoint(
  store: ObjectStore,
  runUid: string,
  state: Checkpoint,
): Promise<CheckpointRef> {
  const key = `${prefix(runUid)}${String(state.sequence).padStart(6, '0')}.json`;
  const body = Buffer.from(JSON.stringify(state));
  const put = await store.put(key, body, { ifNoneMatch: true, contentType: 'application/json' });
  if (put.kind !== 'Stored') {
    // Our own write whose answer was lost looks the same: its bytes tell.
    const found = await store.get(key);
    if (found === undefined || !body.equals(await bytesOf(found)))
      throw new FencedError(`${store.location}${key} was written by another holder of the run`);
  }
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

/** Small by promise: a conversation is bounded by the context limit. */
export async function bytesOf({ body }: StoredObject): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const prefix = (runUid: string): string => `${runPrefix(runUid)}/checkpoints/`;
