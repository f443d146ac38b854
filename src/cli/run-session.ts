import { archiveSandbox } from '../agent/archive.ts';
import {
  addedUsage,
  continuedTranscript,
  type EarlierSession,
  loadEarlierSession,
} from '../agent/earlier-session.ts';
import type { LoopResult } from '../agent/loop.ts';
import type { Model } from '../agent/models/port.ts';
import { envelopeUsage, type SavedSession, type SessionEnvelope, saveSession } from '../agent/session.ts';
import { renderMarkdown, type TranscriptEntry } from '../agent/transcript.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { SettingsError } from '../settings/operator.ts';
import type { ObjectStore } from '../store/port.ts';

/** Packing at the end of a run that somebody waits for. */
const ARCHIVE_TIMEOUT_MS = 120_000;

/** Throws SettingsError when the folder holds no session that can be read. */
export async function readEarlierSession(store: ObjectStore, folder: string): Promise<EarlierSession> {
  // In a flat store the id is not part of a file's name.
  const earlier = await loadEarlierSession(store, 'any').catch((error: unknown) => {
    throw new SettingsError(`${folder}: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (earlier === undefined)
    throw new SettingsError(`${folder} holds no context.json: name a folder that --save-session wrote`);
  return earlier;
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
      usage: addedUsage(record.earlierUsage, envelopeUsage(end.usage)),
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
  return continuedTranscript(earlierTranscript, own);
}
