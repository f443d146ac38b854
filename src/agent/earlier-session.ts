import { createHash } from 'node:crypto';
import { type Sandbox, SPILL_DIR } from '../sandbox/port.ts';
import type { ObjectStore } from '../store/port.ts';
import { restoreSandbox } from './archive.ts';
import { toCanonical as fromLegacyGemini } from './models/gemini/canonical.ts';
import type { CanonicalMessage, Contents, Model } from './models/port.ts';
import { loadSession, type SessionEnvelope, sessionKey } from './session.ts';

/** An earlier conversation, as a reply goes on with it. */
export interface EarlierSession {
  /** Under which its files are in the store. */
  readonly id: string;
  /** Undefined for a conversation that was saved before there were envelopes. */
  readonly envelope: SessionEnvelope | undefined;
  readonly messages: readonly CanonicalMessage[];
  /** Of its context: the next save replaces this one and no other. */
  readonly etag: string;
  /** As people read it; the new one goes below. */
  readonly transcript: string | undefined;
}

/** Unpacking at the start of a run that somebody waits for. */
const ARCHIVE_TIMEOUT_MS = 120_000;

const GONE = 'The files of the earlier sandbox are gone.';

/** A longer one is not carried on: nobody reads it to its end. */
const MAX_TRANSCRIPT_BYTES = 8 * 1024 * 1024;

/** Undefined when there is no such session (any more). Throws SessionFormatError, StoreError. */
export async function loadEarlierSession(
  store: ObjectStore,
  id: string,
  signal?: AbortSignal,
): Promise<EarlierSession | undefined> {
  const loaded = await loadSession(store, id, signal);
  if (loaded === undefined) return undefined;
  const { read, etag } = loaded;
  const transcript = await readTranscript(store, id, signal);
  return read.kind === 'Canonical'
    ? { id, envelope: read.envelope, messages: read.envelope.contents, etag, transcript }
    : { id, envelope: undefined, messages: fromLegacyGemini(read.contents), etag, transcript };
}

/** The earlier conversation and the reply, in the model's own form, whichever model had the conversation. */
export function continuedContents(model: Model, earlier: EarlierSession, reply: string): Contents {
  return [...model.fromCanonical(earlier.messages), model.makeUserContent(reply)];
}

/** The earlier transcript with this run's below it. */
export const continuedTranscript = (earlier: string | undefined, own: string): string =>
  earlier === undefined ? own : `${earlier.trimEnd()}\n\n---\n\n${own}`;

/** Tokens of the whole conversation. */
export function addedUsage(
  earlier: SessionEnvelope['usage'] | undefined,
  now: SessionEnvelope['usage'],
): SessionEnvelope['usage'] {
  if (earlier === undefined) return now;
  return {
    input_tokens: earlier.input_tokens + now.input_tokens,
    output_tokens: earlier.output_tokens + now.output_tokens,
    cache_read_tokens: earlier.cache_read_tokens + now.cache_read_tokens,
    cache_creation_tokens: earlier.cache_creation_tokens + now.cache_creation_tokens,
  };
}

export interface RestoredFiles {
  /** What could not be done, for people and for the model; undefined when there was nothing to do, or all went well. */
  readonly problem: string | undefined;
  /** The highest number that a spilled file of the earlier conversation has: its files must not be written over. */
  readonly lastSpill: number;
}

/**
 * Unpacks the earlier work directory in the new sandbox; an archive whose sum is not the one that the session
 * names is of another save and is left alone. Never rejects: a conversation goes on without its files too.
 */
export async function restoreFiles(
  store: ObjectStore,
  earlier: EarlierSession,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<RestoredFiles> {
  try {
    const problem = await unpack(store, earlier, sandbox, signal);
    return { problem, lastSpill: await lastSpill(sandbox, signal) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { problem: `The files of the earlier sandbox could not be restored: ${why}`, lastSpill: 0 };
  }
}

async function unpack(
  store: ObjectStore,
  { id, envelope }: EarlierSession,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string | undefined> {
  const expected = envelope?.files?.sandbox;
  // Before there were envelopes nothing named the archive: one that is there is the session's.
  if (expected === undefined && envelope !== undefined) return undefined;
  if (expected !== undefined) {
    const stored = await store.get(sessionKey(id, 'sandbox'), signal);
    if (stored === undefined) return GONE;
    const sum = createHash('sha256');
    for await (const chunk of stored.body) sum.update(chunk);
    if (sum.digest('hex') !== expected.sha256)
      return 'The files of the earlier sandbox belong to another save of the session and were not restored.';
  }
  const archive = await store.get(sessionKey(id, 'sandbox'), signal);
  if (archive === undefined) return expected && GONE;
  await restoreSandbox(sandbox, archive.body, { signal, timeoutMs: ARCHIVE_TIMEOUT_MS });
  return undefined;
}

/** The highest number that a spilled file in the sandbox has, 0 for none. Rejects as `exec` does. */
export async function lastSpill(sandbox: Sandbox, signal: AbortSignal): Promise<number> {
  const listed = await sandbox.exec(`ls -1 ${SPILL_DIR} 2>/dev/null || true`, { signal });
  const names = Buffer.from(listed.stdout).toString('utf8').split('\n');
  const numbers = names.map((name) => Number(/(?:^|_)(\d{1,9})\.\w/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}

async function readTranscript(
  store: ObjectStore,
  id: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const stored = await store.get(sessionKey(id, 'transcript'), signal);
  if (stored === undefined || stored.bytes > MAX_TRANSCRIPT_BYTES) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of stored.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
