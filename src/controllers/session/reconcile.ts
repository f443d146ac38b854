import type { Logger } from 'pino';
import { AGENT_SESSIONS, type AgentSession } from '../../crds/agent-session.ts';
import { lingeringSession, reapTime } from '../../crds/lingering.ts';
import { API_VERSION, type KubeObject, SESSION_FINALIZER } from '../../crds/meta.ts';
import type { Clock } from '../../kube/clock.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import type { ObjectStore } from '../../store/port.ts';
import { changedCondition } from '../conditions.ts';
import { decideSession, type Lingering, type SessionStep } from './decide.ts';

export interface SessionDeps {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: ObjectStore;
  /** Sandboxes as a cache has them, of any kind; those that linger for a session say so. */
  sandboxes(): readonly KubeObject[];
}

export const SESSION_FIELD_MANAGER = 'hummingbird-session';
/** Where everything of a session lies in the store. */
export const sessionPrefix = (sessionId: string): string => `sessions/${sessionId}/`;

/** Keeps a session's condition true, ends it when it expires, and its archive with it. */
export function createSessionReconciler(deps: SessionDeps) {
  return async (ref: ObjectRef): Promise<ReconcileResult> => {
    const session = await deps.kube.get(AGENT_SESSIONS, ref);
    if (session === undefined) return {};
    const step = decideSession(session, lingeringFor(session, deps.sandboxes()), deps.clock.now());
    if (step.kind === 'Done') return {};
    if (step.kind === 'Wait') return { requeueAfterMs: step.ms };
    await act(deps, session, step);
    return { requeueAfterMs: 0 };
  };
}

async function act(
  deps: SessionDeps,
  session: AgentSession,
  step: Exclude<SessionStep, { readonly kind: 'Done' | 'Wait' }>,
): Promise<void> {
  const ref = refOf(session);
  switch (step.kind) {
    case 'AddFinalizer':
      await addFinalizer(deps.kube, AGENT_SESSIONS, session, SESSION_FINALIZER);
      return;
    case 'DeleteSession':
      deps.events.record(
        session,
        'Normal',
        'Expired',
        'The session has expired; its archive is deleted with it',
      );
      await deps.kube.delete(AGENT_SESSIONS, ref, {
        ...(session.metadata.uid && { uid: session.metadata.uid }),
      });
      return;
    case 'DeleteArchive':
      await deleteArchive(deps, session, step.lastTry);
      await removeFinalizer(deps.kube, AGENT_SESSIONS, session, SESSION_FINALIZER);
      return;
    case 'SetStatus':
      await setStatus(deps, session, step);
      return;
    default:
      step satisfies never;
  }
}

async function deleteArchive(deps: SessionDeps, session: AgentSession, lastTry: boolean): Promise<void> {
  const prefix = sessionPrefix(session.metadata.name ?? '');
  try {
    for await (const key of deps.store.list(prefix)) await deps.store.delete(key);
  } catch (error) {
    if (!lastTry) throw error;
    const message = `${deps.store.location}${prefix} could not be deleted and is left to the store's own expiry: ${error instanceof Error ? error.message : error}`;
    deps.log.warn({ session: session.metadata.name }, message);
    deps.events.record(session, 'Warning', 'ArchiveLeft', message);
  }
}

/** The sandbox of the newest save, which is the one that goes last. Pure. */
export function lingeringFor(
  { metadata }: AgentSession,
  sandboxes: readonly KubeObject[],
): Lingering | undefined {
  const [newest] = sandboxes
    .filter((sandbox) => {
      const session = lingeringSession(sandbox);
      return session?.name === metadata.name && session?.namespace === metadata.namespace;
    })
    .toSorted((a, b) => reapTime(b) - reapTime(a));
  if (newest === undefined || Number.isNaN(reapTime(newest))) return undefined;
  const { name = '', namespace } = newest.metadata;
  return {
    pod: name,
    ...(namespace === undefined ? {} : { namespace }),
    until: new Date(reapTime(newest)).toISOString(),
  };
}

/** Only these two are ours; the rest of the status belongs to the run that saved the session. */
async function setStatus(
  deps: SessionDeps,
  session: AgentSession,
  wanted: Extract<SessionStep, { readonly kind: 'SetStatus' }>,
): Promise<void> {
  const condition = changedCondition(
    session.status?.conditions,
    {
      type: 'Resumable',
      status: wanted.resumable ? 'True' : 'False',
      reason: wanted.reason,
      message: wanted.message,
    },
    { now: deps.clock.now(), generation: session.metadata.generation },
  );
  const { name, namespace } = session.metadata;
  await deps.kube.patch(
    AGENT_SESSIONS,
    refOf(session),
    {
      type: 'apply',
      fieldManager: SESSION_FIELD_MANAGER,
      force: true,
      body: {
        apiVersion: API_VERSION,
        kind: 'AgentSession',
        metadata: { name, namespace },
        status: {
          conditions: [condition],
          ...(wanted.lingering === undefined ? {} : { lingering: wanted.lingering }),
        },
      },
    },
    { subresource: 'status' },
  );
}

const refOf = ({ metadata }: AgentSession): ObjectRef => ({
  name: metadata.name ?? '',
  ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
});
