import type { Logger } from 'pino';
import type { OperatorParts } from '../cli/operator.ts';
import { createPoolController } from '../controllers/pool/controller.ts';
import type { EgressWatch } from '../controllers/pool/egress/watch.ts';
import type { PoolMetrics } from '../controllers/pool/metrics.ts';
import { runReaper } from '../controllers/pool/reap.ts';
import { createSessionReconciler } from '../controllers/session/reconcile.ts';
import { createWorkflowReconciler } from '../controllers/workflow/reconcile.ts';
import { wokenByRun } from '../controllers/workflow/wakes.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { AgentSession } from '../crds/agent-session.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { labelValue } from '../crds/labels.ts';
import { ANNOTATIONS, type KubeObject, LABELS } from '../crds/meta.ts';
import { isTerminal } from '../crds/reasons.ts';
import type { SandboxPool } from '../crds/sandbox-pool.ts';
import { keyOf, refOfKey } from '../kube/cache.ts';
import { systemClock } from '../kube/clock.ts';
import { type Controller, createController, from } from '../kube/controller.ts';
import type { Informer } from '../kube/informer.ts';
import type { ControllerRevision, Deployment, NetworkPolicy, Pod } from '../kube/kinds.ts';
import { runLeaderElection } from '../kube/lease/leader.ts';
import { errorFields } from '../kube/log.ts';
import type { EventRecorder, KubeClient } from '../kube/port.ts';
import type { NotesFactory } from '../notes/port.ts';
import type { References } from '../settings/references.ts';
import type { ObjectStore } from '../store/port.ts';
import { operatorPods } from './machines.ts';
import type { SourceCredentials } from './sources.ts';
import { checkProject, checkReferences } from './workflow-checks.ts';

export interface LeaderParts {
  readonly kube: KubeClient;
  /** For the leader's Lease, see `joinLease`. */
  readonly leases: KubeClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly namespace: string;
  readonly sandboxNamespace: string;
  /** Unique per process. */
  readonly identity: string;
  readonly store: ObjectStore;
  readonly references: References;
  readonly sources: SourceCredentials;
  readonly notes: NotesFactory;
  readonly runs: Informer<AgentRun>;
  readonly sessions: Informer<AgentSession>;
  readonly workflows: Informer<AgentWorkflow>;
  readonly revisions: Informer<ControllerRevision>;
  readonly pools: Informer<SandboxPool>;
  readonly pods: Informer<Pod>;
  readonly deployments: Informer<Deployment>;
  readonly networkPolicies: Informer<NetworkPolicy>;
  readonly egress: EgressWatch;
  readonly poolMetrics: PoolMetrics;
  /** Run while this replica leads; each ends when its signal is aborted, and never rejects. */
  readonly beside: OperatorParts['loops'];
}

/**
 * What needs one writer: pools, the reaper, and the status of workflows and sessions. Runs are not among it: each
 * has a holder of its own, so all replicas share them.
 */
export function leaderLoop(parts: LeaderParts): OperatorParts['loops'][number] {
  const { leases, namespace, identity, log } = parts;
  return {
    name: 'leader',
    run: (signal) =>
      runLeaderElection({
        client: leases,
        namespace,
        name: 'hummingbird-operator',
        identity,
        signal,
        logger: log,
        lead: (leading) => lead(parts, leading),
      }),
  };
}

async function lead(parts: LeaderParts, signal: AbortSignal): Promise<void> {
  const { kube, events, log, sandboxNamespace } = parts;
  const controllers = [poolController(parts), workflowController(parts), sessionController(parts)];
  const ending = new AbortController();
  const until = AbortSignal.any([signal, ending.signal]);
  const beside = parts.beside.map((loop) => loop.run(until));
  try {
    await Promise.all(controllers.map((controller) => controller.start()));
    const metrics = parts.poolMetrics;
    await runReaper({ kube, events, metrics, namespaces: [sandboxNamespace], logger: log }, signal);
  } catch (error) {
    // Stopped before the caches had synced; the election goes on.
    if (!signal.aborted) log.error(errorFields(error), 'leading failed');
  } finally {
    ending.abort(new Error('no longer leading'));
    await Promise.all([...beside, ...controllers.map((controller) => controller.stop())]);
  }
}

function poolController(parts: LeaderParts): Controller {
  const { kube, events, pools, pods, deployments, networkPolicies, egress, log } = parts;
  const owned = { pods, deployments, networkPolicies };
  const metrics = parts.poolMetrics;
  const operator = operatorPods(parts.namespace);
  return createPoolController({ kube, events, metrics, pools, ...owned, egress, operator, logger: log });
}

function sessionController({ kube, events, log, store, sessions, pods }: LeaderParts): Controller {
  const reconcile = createSessionReconciler({
    ...{ kube, events, clock: systemClock, log, store },
    sandboxes: () => pods.list(),
  });
  return createController({
    name: 'agentsession',
    sources: [from(sessions), from(pods, ({ object }) => sessionKeys(object, sessions))],
    reconcile: (key) => reconcile(refOfKey(key)),
    logger: log,
  });
}

/** The sessions that a sandbox may linger for, or lingered for a moment ago. */
function sessionKeys({ metadata }: KubeObject, sessions: Informer<AgentSession>): readonly string[] {
  const label = metadata.labels?.[LABELS.session];
  if (label === undefined) return [];
  const namespace = metadata.annotations?.[ANNOTATIONS.runName]?.split('/')[0];
  const plain = `${namespace}/${label}`;
  if (sessions.get(plain) !== undefined) return [plain];
  return sessions.list((session) => labelValue(session.metadata.name ?? '') === label).map(keyOf);
}

function workflowController(parts: LeaderParts): Controller {
  const { kube, events, references, notes, runs, workflows, revisions, log } = parts;
  const reconcile = createWorkflowReconciler({
    kube,
    events,
    clock: systemClock,
    references: (workflow) => checkReferences(parts.sources, kube, workflow),
    project: (workflow, path) => checkProject(references, notes, workflow, path),
    activeRuns: ({ metadata }) =>
      runs.list((run) => run.spec.workflowRef.name === metadata.name && !isTerminal(run.status?.phase))
        .length,
    revisions: () => revisions.list(),
    revisionsInUse: () =>
      new Set(
        runs
          .list(({ status }) => !isTerminal(status?.phase))
          .flatMap(({ status }) => (status?.workflow === undefined ? [] : [status.workflow.revision])),
      ),
  });
  return createController({
    name: 'agentworkflow',
    sources: [from(workflows), from(runs, wokenByRun)],
    reconcile: (key) => reconcile(refOfKey(key)),
    logger: log,
  });
}
