import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ObjectStore, PutResult, StoredObject } from '../store/port.ts';
import type { CanonicalMessage, Usage } from './models/port.ts';

const count = z.int().nonnegative();

export const canonicalMessageSchema: z.ZodType<CanonicalMessage> = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: z.string() }),
  z.object({
    role: z.literal('assistant'),
    content: z.string(),
    tool_calls: z
      .array(
        z.object({
          id: z.string(),
          type: z.literal('function'),
          function: z.object({ name: z.string(), arguments: z.string() }),
        }),
      )
      .exactOptional(),
    extra: z.record(z.string(), z.unknown()).exactOptional(),
  }),
  z.object({ role: z.literal('tool'), tool_call_id: z.string(), name: z.string(), content: z.string() }),
]);

const storedFileSchema = z.object({ sha256: z.string(), bytes: count });

export const envelopeSchema = z.object({
  format_version: z.literal(1),
  session_id: z.string().min(1),
  workflow: z.string(),
  project: z.string(),
  iid: z.int().positive(),
  sha: z.string().exactOptional(),
  /** uid of the run that saved it, so that a save that is repeated knows its own. */
  run: z.string().exactOptional(),
  model: z.string(),
  provider: z.string(),
  /** RFC 3339. */
  updated_at: z.string(),
  usage: z.object({
    input_tokens: count,
    output_tokens: count,
    cache_read_tokens: count,
    cache_creation_tokens: count,
  }),
  contents: z.array(canonicalMessageSchema),
  /** Sums of the two files beside: one that does not fit belongs to another save and is not to be used. */
  files: z
    .object({ transcript: storedFileSchema.exactOptional(), sandbox: storedFileSchema.exactOptional() })
    .exactOptional(),
});

/** `context.json`: what a reply needs to continue the conversation, with any provider. */
export type SessionEnvelope = z.output<typeof envelopeSchema>;

export type ReadEnvelope =
  | { readonly kind: 'Canonical'; readonly envelope: SessionEnvelope }
  /** Written before there were versions: contents in Gemini's own form. */
  | { readonly kind: 'LegacyGemini'; readonly contents: readonly unknown[] };

export const SESSION_FILES = {
  context: 'context.json',
  transcript: 'transcript.md',
  sandbox: 'sandbox.tar.gz',
} as const;

/** Key of one of a session's files. */
export function sessionKey(sessionId: string, file: keyof typeof SESSION_FILES): string {
  return `sessions/${sessionId}/${SESSION_FILES[file]}`;
}

export function envelopeUsage(usage: Usage): SessionEnvelope['usage'] {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_creation_tokens: usage.cacheWriteTokens,
  };
}

/** What is stored is no session that this version can read; trying again does not help. */
export class SessionFormatError extends Error {
  override readonly name = 'SessionFormatError';
}

/** Throws SessionFormatError with the place of the fault, or the version that it does not know. */
export function parseEnvelope(text: string): ReadEnvelope {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new SessionFormatError(
      'The session cannot be read: context.json is not JSON. Start a new analysis.',
      { cause },
    );
  }
  const version = versioned.safeParse(json).data?.format_version;
  if (version === undefined) {
    const contents = Array.isArray(json) ? json : legacy.safeParse(json).data?.contents;
    if (contents) return { kind: 'LegacyGemini', contents };
  } else if (version !== 1) {
    throw new SessionFormatError(
      `The session was saved in format ${String(version)} by another version of the operator; this one reads 1.`,
    );
  }
  const parsed = envelopeSchema.safeParse(json);
  if (parsed.success) return { kind: 'Canonical', envelope: parsed.data };
  const [issue] = parsed.error.issues;
  const where = issue?.path.map(String).join('.') || '(top level)';
  throw new SessionFormatError(
    `The session cannot be read: ${where}: ${issue?.message ?? 'unknown fault'}. Start a new analysis.`,
  );
}

const versioned = z.object({ format_version: z.unknown() });
const legacy = z.object({ contents: z.array(z.unknown()) });

export interface SessionToSave {
  readonly envelope: Omit<SessionEnvelope, 'files'>;
  readonly transcript: string;
  /** Stores the sandbox's archive under the key; left out when there is no sandbox. */
  readonly archive?: (store: ObjectStore, key: string) => Promise<PutResult>;
  /** Etag of the context that this conversation continues: another writer's save is then not overwritten. */
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
}

export interface SavedSession {
  /** Of `context.json`; `Conflict` when another run has saved the session meanwhile. */
  readonly context: PutResult;
  /** Sums of the files beside it, those that were stored. */
  readonly files: NonNullable<SessionEnvelope['files']>;
  /** What could not be saved beside it, for the run's condition. */
  readonly missing: readonly { readonly file: string; readonly message: string }[];
}

/**
 * Saves the three files, `context.json` last: it names the sums of the others, so a save that was cut short
 * leaves no session that mixes two. The archive and the transcript are best effort. Throws `StoreError` when
 * the context itself cannot be written.
 */
export async function saveSession(store: ObjectStore, session: SessionToSave): Promise<SavedSession> {
  const { envelope, archive, signal, ifMatch } = session;
  const id = envelope.session_id;
  const missing: { file: string; message: string }[] = [];
  const abort = signal === undefined ? {} : { signal };

  async function attempt(file: 'transcript' | 'sandbox', write: () => Promise<PutResult>) {
    try {
      const put = await write();
      if (put.kind === 'Stored') return { [file]: { sha256: put.sha256, bytes: put.bytes } };
      missing.push({ file: SESSION_FILES[file], message: put.kind });
    } catch (error) {
      signal?.throwIfAborted();
      missing.push({
        file: SESSION_FILES[file],
        message: error instanceof Error ? error.message : String(error),
      });
    }
    return {};
  }

  const files: SavedSession['files'] = {
    ...(archive && (await attempt('sandbox', () => archive(store, sessionKey(id, 'sandbox'))))),
    ...(await attempt('transcript', () =>
      store.put(sessionKey(id, 'transcript'), Buffer.from(session.transcript), {
        contentType: 'text/markdown; charset=utf-8',
        ...abort,
      }),
    )),
  };
  const text = JSON.stringify({ ...envelope, files });
  const context = await store.put(sessionKey(id, 'context'), Buffer.from(text), {
    contentType: 'application/json',
    ...(ifMatch !== undefined && { ifMatch }),
    ...abort,
  });
  return { context, files, missing };
}

export interface LoadedSession {
  readonly read: ReadEnvelope;
  /** For the next save. */
  readonly etag: string;
  /** Of `context.json`. */
  readonly sha256: string;
  readonly bytes: number;
}

/** A context larger than this is none of ours: an envelope holds at most a context window. */
const MAX_CONTEXT_BYTES = 64 * 1024 * 1024;

/** Undefined when there is no such session (any more). Throws SessionFormatError, StoreError. */
export async function loadSession(
  store: ObjectStore,
  sessionId: string,
  signal?: AbortSignal,
): Promise<LoadedSession | undefined> {
  const object = await store.get(sessionKey(sessionId, 'context'), signal);
  if (!object) return undefined;
  const content = await readAll(object);
  return {
    read: parseEnvelope(content.toString('utf8')),
    etag: object.etag,
    sha256: createHash('sha256').update(content).digest('hex'),
    bytes: content.byteLength,
  };
}

async function readAll({ body }: StoredObject): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_CONTEXT_BYTES)
      throw new SessionFormatError(
        `The session cannot be read: context.json is over ${MAX_CONTEXT_BYTES} bytes.`,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
