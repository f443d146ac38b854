import type { AgentRun } from '../../crds/agent-run.ts';
import { isTerminal } from '../../crds/reasons.ts';
import { keyOf, refOfKey } from '../../kube/cache.ts';
import { type Controller, from, type Source } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { HummingbirdOperator } from '../../kube/operator.ts';
import type { EventRecorder } from '../../kube/port.ts';
import { isTrue } from '../conditions.ts';
import type { RunDeps } from './deps.ts';
import { ELSEWHERE_POLL_MS, hasLocal, isElsewhere } from './elsewhere.ts';
import { emptyLocalState, type LocalState, stopAll } from './local.ts';
import { createRunReconciler } from './reconcile.ts';
import { isAutomatic, isRival } from './rivals.ts';
import { sessionIdOf } from './step.ts';

export interface RunControllerOptions {
  readonly operator: HummingbirdOperator;
  readonly runs: Informer<AgentRun>;
  readonly deps: Omit<RunDeps, 'sessionRuns' | 'rivals'>;
  /** Runs reconciled side by side. Their agent loops are not counted: they run beside the reconciles. */
  readonly concurrency: number;
  /** Calls back when a replica came, went or expired, which is when its runs can be taken over. */
  onReplicaChange(handler: () => void): () => void;
  /** False while this replica should take up no run that it does not hold. */
  takesRuns(): boolean;
}

export interface RunController {
  readonly controller: Controller;
  /** Ends the agent loops of this process for good: none begins afterwards. */
  stopAgents(): Promise<void>;
}

export function createRunController(options: RunControllerOptions): RunController {
  const { operator, runs } = options;
  const deps: RunDeps = {
    ...options.deps,
    events: redacted(options.deps),
    sessionRuns: (namespace, session) =>
      runs.list((run) => run.metadata.namespace === namespace && sessionIdOf(run) === session),
    rivals: (run) => runs.list((other) => isRival(run, other)),
  };
  const local = emptyLocalState();
  const reconcile = createRunReconciler(deps, local, ({ namespace, name }, afterMs) =>
    controller.enqueue(`${namespace}/${name}`, afterMs),
  );
  const controller: Controller = operator.control({
    name: 'agentrun',
    sources: [from(runs), turns(runs), rivals(runs), replicaChanges(options)],
    reconcile: async (key, signal) =>
      (await elsewhere(options, local, key))
        ? { requeueAfterMs: ELSEWHERE_POLL_MS }
        : reconcile(refOfKey(key), signal),
    concurrency: options.concurrency,
  });
  return {
    controller,
    stopAgents: () => stopAll(local),
  };
}

async function elsewhere(
  { runs, deps, takesRuns }: RunControllerOptions,
  local: LocalState,
  key: string,
): Promise<boolean> {
  const run = runs.get(key);
  if (run === undefined) return false;
  const holder = run.status?.holder?.replica;
  return isElsewhere(run, {
    self: deps.holderName,
    isLocal: hasLocal(local, key, run.metadata.uid ?? ''),
    holderAlive: holder !== undefined && (await deps.isHolderAlive(holder)),
    takesRuns: takesRuns(),
  });
}

/** Messages carry what GitLab, the store or the model said: no secret of this process leaves it that way. */
function redacted({ events, redact }: RunControllerOptions['deps']): EventRecorder {
  return {
    record: (target, type, reason, message) => events.record(target, type, reason, redact(message)),
    flush: () => events.flush(),
  };
}

/** Wakes the runs that go on with a session when one of its runs is over, or its note stands. */
function turns(runs: Informer<AgentRun>): Source {
  return from(runs, ({ type, object }) => {
    const { status } = object;
    if (type !== 'Deleted' && !isTerminal(status?.phase) && status?.note === undefined) return [];
    const session = sessionIdOf(object);
    return runs
      .list(({ spec, status }) => spec.sessionRef?.name === session && !isTerminal(status?.phase))
      .map(keyOf);
  });
}

/** Wakes the automatic runs whose place one has taken, or that wait until it is over. */
function rivals(runs: Informer<AgentRun>): Source {
  return from(runs, ({ type, object }) => {
    const { status } = object;
    const telling = type === 'Deleted' || isTerminal(status?.phase) || isTrue(status?.conditions, 'Admitted');
    if (!telling || !isAutomatic(object)) return [];
    return runs.list((other) => isRival(object, other) && !isTerminal(other.status?.phase)).map(keyOf);
  });
}

/** Wakes the runs that others hold whenever a replica's Lease may have ended. */
function replicaChanges({ runs, deps, onReplicaChange }: RunControllerOptions): Source {
  const foreign = (run: AgentRun): boolean =>
    !isTerminal(run.status?.phase) && run.status?.holder?.replica !== deps.holderName;
  return {
    subscribe: (enqueue) =>
      onReplicaChange(() => {
        for (const run of runs.list(foreign)) enqueue(keyOf(run));
      }),
    waitForSync: (signal) => runs.waitForSync(signal),
  };
}
