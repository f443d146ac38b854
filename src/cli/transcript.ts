import { createHash } from 'node:crypto';
import { continuedTranscript } from '../agent/earlier-session.ts';
import { loadSession, sessionKey } from '../agent/session.ts';
import { renderMarkdown } from '../agent/transcript.ts';
import { newestCheckpoint } from '../controllers/run/checkpoints.ts';
import { readEarlier } from '../controllers/run/earlier.ts';
import { transcriptHeader } from '../controllers/run/loop-report.ts';
import { AGENT_RUNS, type AgentRun } from '../crds/agent-run.ts';
import { isTerminal } from '../crds/reasons.ts';
import type { KubeClient, ObjectRef } from '../kube/port.ts';
import { SettingsError } from '../settings/operator.ts';
import type { ObjectStore, StoredObject } from '../store/port.ts';

/** A transcript as it is now. */
export interface TranscriptView {
  /** Undefined while there is nothing yet. */
  readonly text: string | undefined;
  /** Whether no more comes. */
  readonly ended: boolean;
}

export type ReadTranscript = (signal: AbortSignal) => Promise<TranscriptView>;

/** A folder of `--save-session`. Its session names the sum of the finished transcript: before that one is running. */
export function transcriptOfFolder(store: ObjectStore): ReadTranscript {
  return async (signal) => {
    const text = await readText(await store.get(sessionKey('any', 'transcript'), signal));
    const loaded = await loadSession(store, 'any', signal);
    const sum =
      loaded?.read.kind === 'Canonical' ? loaded.read.envelope.files?.transcript?.sha256 : undefined;
    const ended = text !== undefined && createHash('sha256').update(text).digest('hex') === sum;
    return { text, ended };
  };
}

/** A run of the cluster: its saved transcript, or what its newest checkpoint tells. Throws SettingsError. */
export function transcriptOfRun(
  kube: Pick<KubeClient, 'get'>,
  store: ObjectStore,
  ref: ObjectRef,
): ReadTranscript {
  return async (signal) => {
    const run = await kube.get(AGENT_RUNS, ref, { signal });
    if (run === undefined)
      throw new SettingsError(
        `there is no AgentRun ${ref.namespace}/${ref.name}, and no folder of this name: see "kubectl get agentruns -n ${ref.namespace}"`,
      );
    const key = run.status?.transcript?.key;
    const saved = key === undefined ? undefined : await readText(await store.get(key, signal));
    if (saved !== undefined) return { text: saved, ended: true };
    return { text: await soFar(run, store, signal), ended: isTerminal(run.status?.phase) };
  };
}

/** As it will be saved: below what was said before, when the run goes on with a session. */
async function soFar(run: AgentRun, store: ObjectStore, signal: AbortSignal): Promise<string | undefined> {
  const { uid = '' } = run.metadata;
  const newest = await newestCheckpoint(store, uid);
  if (newest === undefined) return undefined;
  const { model, transcript } = newest.state;
  const { sessionRef } = run.spec;
  const earlier = sessionRef && (await readEarlier(store, uid, signal));
  const header = transcriptHeader(run, { model, session: sessionRef?.name ?? uid });
  return continuedTranscript(earlier?.transcript, renderMarkdown(header, transcript));
}

/** How soon somebody who follows sees what is new. */
const POLL_MS = 1_000;

/**
 * Prints the transcript; with `follow` what comes until it ends or `signal` is aborted. Throws SettingsError when
 * there is nothing to print and nobody waits for it.
 */
export async function printTranscript(
  read: ReadTranscript,
  options: {
    readonly follow: boolean;
    readonly write: (text: string) => void;
    readonly pause: (milliseconds: number, signal: AbortSignal) => Promise<void>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { follow, write, pause, signal } = options;
  let printed = '';
  while (!signal.aborted) {
    const { text, ended } = await read(signal);
    if (text !== undefined && text !== printed) {
      // What was written before is not changed by what comes; if it is after all, it is shown anew.
      write(text.startsWith(printed) ? text.slice(printed.length) : `\n${text}`);
      printed = text;
    }
    if (!follow && printed === '')
      throw new SettingsError(
        'there is no transcript yet: the model has not answered; --follow waits for it',
      );
    if (!follow || ended) return;
    await pause(POLL_MS, signal);
  }
}

/** Small by promise: renderMarkdown bounds it. */
async function readText(stored: StoredObject | undefined): Promise<string | undefined> {
  if (stored === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of stored.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
