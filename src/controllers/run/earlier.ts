import { z } from 'zod';
import { type EarlierSession, loadEarlierSession } from '../../agent/earlier-session.ts';
import { canonicalMessageSchema, envelopeSchema } from '../../agent/session.ts';
import type { ObjectStore } from '../../store/port.ts';
import { bytesOf, runPrefix } from './result.ts';

/** The session as a run found it. Kept, so that whoever takes the run over goes on from the same words. */
const Found = z.object({
  version: z.literal(1),
  id: z.string(),
  etag: z.string(),
  envelope: envelopeSchema.optional(),
  /** Of a session that has no envelope. */
  messages: z.array(canonicalMessageSchema).optional(),
  transcript: z.string().optional(),
});

const keyOf = (runUid: string): string => `${runPrefix(runUid)}/session.json`;

/**
 * Keeps the session for the run; what was kept first stays. Undefined when the store has no such session (any
 * more). Throws SessionFormatError, StoreError.
 */
export async function keepEarlier(
  store: ObjectStore,
  runUid: string,
  sessionId: string,
  signal: AbortSignal,
): Promise<EarlierSession | undefined> {
  const kept = await readEarlier(store, runUid, signal);
  if (kept !== undefined) return kept;
  const earlier = await loadEarlierSession(store, sessionId, signal);
  if (earlier === undefined) return undefined;
  const { id, etag, envelope, messages, transcript } = earlier;
  const found = {
    version: 1,
    id,
    etag,
    transcript,
    ...(envelope === undefined ? { messages } : { envelope }),
  };
  const put = await store.put(keyOf(runUid), Buffer.from(JSON.stringify(found)), {
    ifNoneMatch: true,
    contentType: 'application/json',
    signal,
  });
  return put.kind === 'Stored' ? earlier : readEarlier(store, runUid, signal);
}

/** Undefined when none was kept for the run. Throws StoreError. */
export async function readEarlier(
  store: ObjectStore,
  runUid: string,
  signal?: AbortSignal,
): Promise<EarlierSession | undefined> {
  const stored = await store.get(keyOf(runUid), signal);
  if (stored === undefined) return undefined;
  const found = Found.parse(JSON.parse((await bytesOf(stored)).toString('utf8')));
  const { id, etag, envelope, transcript } = found;
  return { id, etag, envelope, messages: envelope?.contents ?? found.messages ?? [], transcript };
}
