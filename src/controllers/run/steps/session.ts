import { archiveSandbox } from '../../../agent/archive.ts';
import type { Checkpoint } from '../../../agent/checkpoint.ts';
import { addedUsage, continuedTranscript, type EarlierSession } from '../../../agent/earlier-session.ts';
import { resumableContents } from '../../../agent/resumable.ts';
import {
  envelopeUsage,
  loadSession,
  type SavedSession,
  type SessionToSave,
  saveSession as saveFiles,
  sessionKey,
} from '../../../agent/session.ts';
import { renderMarkdown } from '../../../agent/transcript.ts';
import { AGENT_SESSIONS, type AgentSession, type AgentSessionStatus } from '../../../crds/agent-session.ts';
import { labelValue } from '../../../crds/labels.ts';
import { API_VERSION, LABELS, MANAGED_BY, SESSION_FINALIZER } from '../../../crds/meta.ts';
import { isKubeError } from '../../../kube/errors.ts';
import { newestCheckpoint } from '../checkpoints.ts';
import { readEarlier } from '../earlier.ts';
import { transcriptHeader } from '../loop-report.ts';
import { money } from '../result.ts';
import { nextStatus, type StepContext, type StepResult, sessionIdOf } from '../step.ts';
import { ownSandbox } from './sandbox.ts';

/** How long a reply can go on with a conversation; each run of the session moves it. */
const SESSION_LIFETIME_MS = 30 * 24 * 3_600_000;
const RETRY_MS = 2_000;
/** The note is out already; an archive that takes longer would hold the sandbox for little. */
const ARCHIVE_TIMEOUT_MS = 120_000;

/** Saves the conversation, its transcript and the work directory, so that a reply can go on. Best effort. */
export async function saveSession(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  try {
    const newest = await newestCheckpoint(deps.store, run.metadata.uid ?? '');
    if (newest === undefined)
      return unsaved(context, 'NothingToSave', 'The run ended before the model was asked', 'False');
    const saved = await saveOnce(context, newest.state);
    if (typeof saved === 'string') return unsaved(context, 'NotResumable', saved, 'False');
    if (saved.context.kind !== 'Stored')
      return unsaved(
        context,
        'Conflict',
        'The session was saved by another run meanwhile, or has expired',
        'False',
      );
    await upsertSession(context, saved, saved.context);
    return done(context, saved);
  } catch (error) {
    return unsaved(context, 'Retrying', error instanceof Error ? error.message : String(error), 'Unknown');
  }
}

/**
 * A conversation that is continued replaces the one that the run found, and no other. That is looked at before the
 * files beside it are written over; a save whose record was lost is known again by the run's uid.
 */
async function saveOnce(context: StepContext, state: Checkpoint): Promise<SavedSession | string> {
  const { deps, run } = context;
  const { uid = '' } = run.metadata;
  const earlier = run.spec.sessionRef && (await readEarlier(deps.store, uid));
  if (earlier !== undefined) {
    const now = await loadSession(deps.store, sessionIdOf(run));
    if (now?.read.kind === 'Canonical' && now.read.envelope.run === uid)
      return { context: { ...now, kind: 'Stored' }, files: now.read.envelope.files ?? {}, missing: [] };
    if (now?.etag !== earlier.etag) return { context: { kind: 'Conflict' }, files: {}, missing: [] };
  }
  const toSave = await sessionOf(context, state, earlier);
  return typeof toSave === 'string' ? toSave : saveFiles(deps.store, toSave);
}

async function sessionOf(
  context: StepContext,
  state: Checkpoint,
  earlier: EarlierSession | undefined,
): Promise<SessionToSave | string> {
  const { deps, run, workflow } = context;
  if (workflow === undefined) return 'The AgentWorkflow is gone';
  const model = await deps.model(workflow, run.spec.model?.name);
  if (model.kind === 'Invalid') return model.message;
  const { project, iid } = run.spec.mergeRequest;
  const sandbox = await ownSandbox(context);
  return {
    envelope: {
      format_version: 1,
      session_id: sessionIdOf(run),
      workflow: run.spec.workflowRef.name,
      project,
      iid,
      ...(run.status?.sha === undefined ? {} : { sha: run.status.sha }),
      run: run.metadata.uid ?? '',
      model: state.model,
      provider: state.provider,
      updated_at: deps.clock.now().toISOString(),
      usage: addedUsage(earlier?.envelope?.usage, envelopeUsage(state.usage)),
      contents: [...model.value.toCanonical(resumableContents(model.value, state))],
    },
    transcript: continuedTranscript(
      earlier?.transcript,
      deps.redact(
        renderMarkdown(
          transcriptHeader(run, { model: state.model, session: sessionIdOf(run) }),
          state.transcript,
        ),
      ),
    ),
    ...(earlier === undefined ? {} : { ifMatch: earlier.etag }),
    ...(sandbox === undefined
      ? {}
      : { archive: (store, key) => archiveSandbox(sandbox, store, key, { timeoutMs: ARCHIVE_TIMEOUT_MS }) }),
  };
}

type Stored = Extract<SavedSession['context'], { readonly kind: 'Stored' }>;

/** The AgentSession that a reply is found by. Counts a run once, however often this step is repeated. */
async function upsertSession(context: StepContext, saved: SavedSession, stored: Stored): Promise<void> {
  const { deps, run } = context;
  const name = sessionIdOf(run);
  const { namespace = '' } = run.metadata;
  const ref = { namespace, name };
  const before =
    (await deps.kube.get(AGENT_SESSIONS, ref)) ?? (await createSession(context, name, namespace));
  const status = sessionStatus(context, before, saved, stored);
  await deps.kube.patch(
    AGENT_SESSIONS,
    ref,
    {
      type: 'apply',
      fieldManager: 'hummingbird-run',
      force: true,
      body: { apiVersion: API_VERSION, kind: 'AgentSession', metadata: { name, namespace }, status },
    },
    { subresource: 'status' },
  );
}

async function createSession(
  { deps, run }: StepContext,
  name: string,
  namespace: string,
): Promise<AgentSession> {
  const { workflowRef, mergeRequest } = run.spec;
  const discussionId = run.status?.note?.discussionId;
  const session: AgentSession = {
    apiVersion: API_VERSION,
    kind: 'AgentSession',
    metadata: {
      name,
      namespace,
      finalizers: [SESSION_FINALIZER],
      labels: {
        [LABELS.managedBy]: MANAGED_BY,
        [LABELS.workflow]: labelValue(workflowRef.name),
        ...(run.status?.projectId === undefined ? {} : { [LABELS.projectId]: String(run.status.projectId) }),
      },
    },
    spec: {
      workflowRef,
      mergeRequest: { project: mergeRequest.project, iid: mergeRequest.iid },
      ...(discussionId === undefined ? {} : { discussionId }),
    },
  };
  try {
    return await deps.kube.create(AGENT_SESSIONS, session);
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error;
    return session;
  }
}

function sessionStatus(
  { deps, run }: StepContext,
  before: AgentSession,
  saved: SavedSession,
  { sha256, bytes }: Stored,
): AgentSessionStatus {
  const { project, iid } = run.spec.mergeRequest;
  const now = deps.clock.now();
  const name = run.metadata.name ?? '';
  const counted = before.status?.lastRun?.name === name;
  const cost = sum(before.status?.costUSD, counted ? '0' : run.status?.costUSD, before.status?.runs);
  const id = before.metadata.name ?? '';
  const { transcript, sandbox } = saved.files;
  return {
    mergeRequest: `${project}!${iid}`,
    archive: { key: sessionKey(id, 'context'), sha256, bytes },
    ...(transcript === undefined ? {} : { transcript: { key: sessionKey(id, 'transcript'), ...transcript } }),
    ...(sandbox === undefined ? {} : { workspace: { key: sessionKey(id, 'sandbox'), ...sandbox } }),
    runs: (before.status?.runs ?? 0) + (counted ? 0 : 1),
    lastRun: { name, time: now.toISOString() },
    ...(cost === undefined ? {} : { costUSD: cost }),
    expiresAt: new Date(now.getTime() + SESSION_LIFETIME_MS).toISOString(),
  };
}

/** One unknown cost makes the sum unknown: it must never look smaller than it is. */
function sum(
  before: string | undefined,
  added: string | undefined,
  runs: number | undefined,
): string | undefined {
  if (added === undefined || (before === undefined && (runs ?? 0) > 0)) return undefined;
  return money(Number(before ?? 0) + Number(added));
}

function done(context: StepContext, saved: SavedSession): StepResult {
  const { deps, run } = context;
  const id = sessionIdOf(run);
  const { transcript } = saved.files;
  const without = saved.missing.map(({ file, message }) => `${file} (${message})`).join(', ');
  const message = `${deps.store.location}sessions/${id}/${without === '' ? '' : ` without ${without}`}`;
  deps.events.record(run, without === '' ? 'Normal' : 'Warning', 'SessionSaved', message);
  return {
    status: nextStatus(
      context,
      {
        session: id,
        ...(transcript === undefined
          ? {}
          : { transcript: { key: sessionKey(id, 'transcript'), ...transcript } }),
      },
      { type: 'SessionSaved', status: 'True', reason: 'Saved', message },
    ),
  };
}

function unsaved(
  context: StepContext,
  reason: string,
  message: string,
  status: 'False' | 'Unknown',
): StepResult {
  const shown = context.deps.redact(message);
  context.deps.events.record(context.run, 'Warning', 'SessionNotSaved', `${reason}: ${shown}`);
  return {
    status: nextStatus(context, {}, { type: 'SessionSaved', status, reason, message: shown }),
    ...(status === 'Unknown' ? { afterMs: RETRY_MS } : {}),
  };
}
