import { createHash } from 'node:crypto';
import { archiveSandbox, restoreSandbox } from '../agent/archive.ts';
import type { LoopResult } from '../agent/loop.ts';
import { toCanonical as fromLegacyGemini } from '../agent/models/gemini/canonical.ts';
import type { CanonicalMessage, Contents, Model } from '../agent/models/port.ts';
import {
  envelopeUsage,
  loadSession,
  type SavedSession,
  type SessionEnvelope,
  saveSession,
  sessionKey,
} from '../agent/session.ts';
import { renderMarkdown, type TranscriptEntry } from '../agent/transcript.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import { type Sandbox, SPILL_DIR } from '../sandbox/port.ts';
import { SettingsError } from '../settings/operator.ts';
import type { ObjectStore } from '../store/port.ts';

/** An earlier conversation, as a reply goes on with it. */
export interface EarlierSession {
  /** Undefined for a conversation that was saved before there were envelopes. */
  readonly envelope: SessionEnvelope | undefined;
  readonly messages: readonly CanonicalMessage[];
  readonly etag: string;
  /** As people read it; the new one goes below. */
  readonly transcript: string | undefined;
}

/** Packing and unpacking at the ends of a run that somebody waits for. */
const ARCHIVE_TIMEOUT_MS = 120_000;

/** A longer one is not carried on: nobody reads it to its end. */
const MAX_TRANSCRIPT_BYTES = 8 * 1024 * 1024;

/** Throws SettingsError when the folder holds no session that can be read. */
export async function readEarlierSession(store: ObjectStore, folder: string): Promise<EarlierSession> {
  // In a flat store the id is not part of a file's name.
  const loaded = await loadSession(store, 'any').catch((error: unknown) => {
    throw new SettingsError(`${folder}: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (loaded === undefined)
    throw new SettingsError(`${folder} holds no context.json: name a folder that --save-session wrote`);
  const { read, etag } = loaded;
  const transcript = await readTranscript(store);
  return read.kind === 'Canonical'
    ? { envelope: read.envelope, messages: read.envelope.contents, etag, transcript }
    : { envelope: undefined, messages: fromLegacyGemini(read.contents), etag, transcript };
}

/** The earlier conversation and the reply, in the model's own form, whichever model had the conversation. */
export function continuedContents(model: Model, earlier: EarlierSession, reply: string): Contents {
  return [...model.fromCanonical(earlier.messages), model.makeUserContent(reply)];
}

/**
 * Unpacks the earlier work directory in the new sandbox; an archive whose sum is not the one that the session
 * names is of another save and is left alone. Returns what could not be done, for people and for the model.
 */
export async function restoreFiles(
  store: ObjectStore,
  { envelope }: EarlierSession,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string | undefined> {
  const expected = envelope?.files?.sandbox;
  if (expected === undefined) return undefined;
  const stored = await store.get(sessionKey('any', 'sandbox'), signal);
  if (stored === undefined) return 'The files of the earlier sandbox are gone.';
  const sum = createHash('sha256');
  for await (const chunk of stored.body) sum.update(chunk);
  if (sum.digest('hex') !== expected.sha256)
    return 'The files of the earlier sandbox belong to another save of the session and were not restored.';
  const again = await store.get(sessionKey('any', 'sandbox'), signal);
  if (again === undefined) return 'The files of the earlier sandbox are gone.';
  await restoreSandbox(sandbox, again.body, { signal, timeoutMs: ARCHIVE_TIMEOUT_MS });
  return undefined;
}

/** The highest number that a spilled file of the earlier conversation has: its files must not be written over. */
export async function lastSpill(sandbox: Sandbox, signal: AbortSignal): Promise<number> {
  const listed = await sandbox.exec(`ls -1 ${SPILL_DIR} 2>/dev/null || true`, { signal });
  const names = Buffer.from(listed.stdout).toString('utf8').split('\n');
  const numbers = names.map((name) => Number(/(?:^|_)(\d{1,9})\.\w/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}

export interface SessionRecord {
  readonly id: string;
  readonly run: AgentRun;
  readonly model: Model;
  /** Etag of the context that the conversation continues. */
  readonly ifMatch: string | undefined;
  readonly earlierUsage: SessionEnvelope['usage'] | undefined;
  readonly earlierTranscript: string | undefined;
}

/** Saves the three files. Throws StoreError when the conversation itself cannot be written. */
export async function keepSession(
  store: ObjectStore,
  record: SessionRecord,
  end: LoopResult,
  { sandbox, now }: { readonly sandbox: Sandbox | undefined; readonly now: Date },
): Promise<SavedSession> {
  const { id, run, model, ifMatch } = record;
  const { project, iid, sha } = run.spec.mergeRequest;
  return saveSession(store, {
    envelope: {
      format_version: 1,
      session_id: id,
      workflow: run.spec.workflowRef.name,
      project,
      iid,
      ...(sha === undefined ? {} : { sha }),
      model: model.name,
      provider: model.provider,
      updated_at: now.toISOString(),
      usage: added(record.earlierUsage, envelopeUsage(end.usage)),
      contents: [...model.toCanonical(end.contents)],
    },
    transcript: transcriptOf(record, end.transcript),
    ...(sandbox === undefined
      ? {}
      : { archive: (to, key) => archiveSandbox(sandbox, to, key, { timeoutMs: ARCHIVE_TIMEOUT_MS }) }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  });
}

/** Also written after every iteration, for those who follow it. */
export function transcriptOf(
  { id, run, model, earlierTranscript }: SessionRecord,
  entries: readonly TranscriptEntry[],
): string {
  const { project, iid, sha } = run.spec.mergeRequest;
  const own = renderMarkdown(
    {
      title: `${run.spec.workflowRef.name} on ${project}!${iid}`,
      facts: { ...(sha === undefined ? {} : { commit: sha }), model: model.name, session: id },
      ...(run.spec.message === undefined ? {} : { request: run.spec.message }),
    },
    entries,
  );
  return earlierTranscript === undefined ? own : `${earlierTranscript.trimEnd()}\n\n---\n\n${own}`;
}

async function readTranscript(store: ObjectStore): Promise<string | undefined> {
  const stored = await store.get(sessionKey('any', 'transcript'));
  if (stored === undefined || stored.bytes > MAX_TRANSCRIPT_BYTES) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of stored.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function added(
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
