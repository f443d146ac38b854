import { getServers } from 'node:dns';
import { networkInterfaces, tmpdir } from 'node:os';
import { pino } from 'pino';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { createGoogleCredentials } from '../agent/models/vertex/credentials.ts';
import type { OperatorParts } from '../cli/operator.ts';
import { podForRun } from '../controllers/pool/manifests.ts';
import { poolMetrics } from '../controllers/pool/metrics.ts';
import { createRunController } from '../controllers/run/controller.ts';
import { runMetrics } from '../controllers/run/metrics.ts';
import { inForce } from '../controllers/workflow/accept.ts';
import { newestKept } from '../controllers/workflow/kept.ts';
import { pinnedWorkflow, workflowPins } from '../controllers/workflow/pins.ts';
import { AGENT_RUNS } from '../crds/agent-run.ts';
import { AGENT_SESSIONS } from '../crds/agent-session.ts';
import { AGENT_WORKFLOWS, type AgentWorkflow } from '../crds/agent-workflow.ts';
import { labelSelector } from '../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../crds/meta.ts';
import { SANDBOX_POOLS } from '../crds/sandbox-pool.ts';
import { createHttpClient } from '../http/client.ts';
import { createRedactor } from '../http/redaction.ts';
import { createClient } from '../kube/client.ts';
import { systemClock } from '../kube/clock.ts';
import { connect, defaultSource } from '../kube/config.ts';
import { createEventRecorder } from '../kube/events.ts';
import { exclusiveWork } from '../kube/exclusive.ts';
import { execConnection } from '../kube/exec-connection.ts';
import { CONTROLLER_REVISION, DEPLOYMENT, NETWORK_POLICY, POD } from '../kube/kinds.ts';
import { HummingbirdOperator } from '../kube/operator.ts';
import type { ObjectRef } from '../kube/port.ts';
import { createTransport } from '../kube/transport.ts';
import { poolsByBackend } from '../sandbox/pool/by-backend.ts';
import { claimMetrics } from '../sandbox/pool/metrics.ts';
import { podOpener } from '../sandbox/pool/open-pod.ts';
import { podPool } from '../sandbox/pool/pool.ts';
import type { OperatorSettings } from '../settings/operator.ts';
import { mcpMetrics } from '../sources/mcp/metrics.ts';
import { sourceMetrics } from '../sources/metrics.ts';
import { joinBridge } from './bridge.ts';
import { joinConfiguration } from './configuration.ts';
import { joinDelivery } from './delivery.ts';
import { joinEgress } from './egress.ts';
import { joinGitLab, workflowNotes } from './gitlab.ts';
import { leaderLoop } from './leader.ts';
import { joinLease } from './lease.ts';
import { joinMachines } from './machines.ts';
import { joinMcp } from './mcp.ts';
import { proxiesOf } from './proxies.ts';
import { joinReferences, openModel } from './references.ts';
import { sourceAccess } from './sources.ts';
import { openStore } from './store.ts';

/** A run asks for the same Secrets at its admission, for its note and for its loop, all within a second. */
const RUN_SECRETS_MS = 2_000;

/** Joins the adapters to the controllers, as the settings say. Takes the replica's Lease; throws when it cannot. */
export async function joinOperator(
  settings: OperatorSettings,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OperatorParts> {
  const { namespace, sandboxNamespace, secrets, replicaId } = settings;
  const redactor = createRedactor([secrets.orchestratorToken, ...secrets.markerKeys.map(({ key }) => key)]);
  const log = pino(
    { level: settings.logLevel, base: { replica: replicaId } },
    { write: (line: string) => void process.stdout.write(redactor.redact(line)) },
  );
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const { kubeconfig, context } = settings;
  const connection = connect(
    defaultSource({
      env,
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    }),
  );
  const transport = createTransport(connection);
  const kube = createClient(transport);
  const lease = await joinLease({ connection, namespace, replica: replicaId, registry, log });
  const { holderName } = lease;
  const events = createEventRecorder({
    client: kube,
    component: 'hummingbird-operator',
    instance: replicaId,
    logger: log,
  });

  const proxies = proxiesOf(env);
  const http = createHttpClient({ redactor, proxies });
  const onSecret = (value: string): void => redactor.add(value);
  const programs = settings.mcpCommands;
  const references = joinReferences(kube, onSecret);
  const runReferences = joinReferences(kube, onSecret, { shareMs: RUN_SECRETS_MS });
  const store = openStore(settings.store, proxies);

  const operator = new HummingbirdOperator({ transport, client: kube, logger: log });
  const runs = operator.informer(AGENT_RUNS, { namespace });
  const workflows = operator.informer(AGENT_WORKFLOWS, { namespace });
  const revisions = operator.informer(CONTROLLER_REVISION, {
    namespace,
    labelSelector: labelSelector({ [LABELS.managedBy]: MANAGED_BY }),
  });
  const workflowInForce = (workflow: AgentWorkflow): AgentWorkflow =>
    inForce(workflow, (one) => newestKept(one, revisions.list()));
  const pins = workflowPins({ kube, revisions: () => revisions.list() });
  const workflowOf = async ({ revision, ...ref }: RunWorkflow): Promise<AgentWorkflow | undefined> => {
    const workflow = workflows.get(`${ref.namespace}/${ref.name}`) ?? (await kube.get(AGENT_WORKFLOWS, ref));
    const spec = revision === undefined ? undefined : await pins.pinned({ ...ref, name: revision });
    return spec === undefined ? workflow && workflowInForce(workflow) : pinnedWorkflow(spec, ref, workflow);
  };
  const google = createGoogleCredentials({ http, secrets: redactor });
  const gitlab = joinGitLab({
    ...{ settings, http, references: runReferences, onSecret },
    workflow: workflowOf,
    sourceMetrics: sourceMetrics(registry),
  });
  const pods = operator.informer(POD, { namespace: sandboxNamespace });

  const exec = execConnection(connection);
  const pools = operator.informer(SANDBOX_POOLS, { namespace: sandboxNamespace });
  const claims = claimMetrics(registry);
  const machines = joinMachines({
    ...{ kube, pools, namespace: sandboxNamespace, env, tempDir: tmpdir(), log },
    metrics: claims,
    onSecret: (value) => redactor.add(value),
  });
  const podSandboxes = podPool({
    kube,
    metrics: claims,
    podOf: podForRun,
    cachedPods: (ns) => (pods.hasSynced ? pods.list((pod) => pod.metadata.namespace === ns) : undefined),
    openPod: podOpener({ connection: exec, client: kube, logger: log }),
  });
  const sandboxes = poolsByBackend({
    pods: podSandboxes,
    machines: machines.pool,
    backendOf: (pool) => machines.backendOf(pool),
  });

  const exclusively = exclusiveWork({
    ...{ client: kube, namespace, clock: systemClock, holder: holderName },
    isAlive: (holder) => lease.isHolderAlive(holder),
  });
  const agents = createRunController({
    operator,
    runs,
    concurrency: settings.maxConcurrentRuns,
    onReplicaChange: (handler) => lease.onChange(handler),
    takesRuns: () => !lease.isLate(),
    deps: {
      kube,
      events,
      clock: systemClock,
      log,
      metrics: runMetrics(registry),
      holderName,
      isHolderAlive: (holder) => lease.isHolderAlive(holder),
      workflow: (ref) => workflowOf(ref),
      pins,
      actionToken: (workflow, project) => runReferences.actionToken(workflow, project),
      model: (workflow, override) =>
        openModel({ references: runReferences, http, google }, workflow, override),
      prompt: (workflow) => runReferences.prompt(workflow),
      delivery: joinDelivery({ settings, http, references: runReferences, log, onSecret }),
      sources: gitlab.sources,
      toolServers: joinMcp({
        ...{ references: runReferences, http, programs, env, log },
        metrics: mcpMetrics(registry),
        workflow: workflowOf,
      }),
      commandPrefix: settings.commandPrefix,
      sourceAccess: (workflow, project) =>
        sourceAccess({ references: runReferences, http, programs, onSecret }, workflow, project),
      redact: (text) => redactor.redact(text),
      notes: gitlab.notes,
      mergeRequests: gitlab.mergeRequests,
      threads: gitlab.threads,
      exclusively,
      adoptsSessions: settings.acceptUnsignedMarkers,
      sandboxes,
      store,
    },
  });
  const bridge = joinBridge({
    settings: settings.queue,
    kube,
    events,
    namespace,
    workflows: () =>
      workflows.hasSynced && revisions.hasSynced ? workflows.list().map(workflowInForce) : undefined,
    runsOn: (project, iid) =>
      runs.list(({ spec }) => spec.mergeRequest.project === project && spec.mergeRequest.iid === iid),
    gitlab: {
      mergeRequests: gitlab.mergeRequests,
      threads: gitlab.threads,
      notes: (workflow, project) => workflowNotes(references, gitlab.notes, workflow, project),
    },
    ...{ exclusively, proxies },
    commandPrefix: settings.commandPrefix,
    registry,
    logger: log,
  });
  const egress = await joinEgress({
    ...{ kube, transport, exec, events, pools, pods, machines, registry, log },
    surroundings: { env, nameServers: getServers(), addresses: ownAddresses(), port: settings.healthPort },
  });
  const configuration = joinConfiguration({
    ...{ namespace, sandboxNamespace, env, kube, events, workflows, runs, registry, log },
    path: settings.configPath,
  });
  const leader = leaderLoop({
    kube,
    leases: lease.client,
    events,
    log,
    namespace,
    sandboxNamespace,
    identity: holderName,
    store,
    references,
    sources: { references, http, programs, onSecret },
    notes: gitlab.notes,
    runs,
    sessions: operator.informer(AGENT_SESSIONS, { namespace }),
    workflows,
    revisions,
    pools,
    pods,
    deployments: operator.informer(DEPLOYMENT, { namespace: sandboxNamespace }),
    networkPolicies: operator.informer(NETWORK_POLICY, { namespace: sandboxNamespace }),
    egress: egress.watch,
    poolMetrics: poolMetrics(registry),
    beside: [...bridge.leaderLoops, ...configuration.loops, egress.loop, machines.loop],
  });
  return {
    log,
    registry,
    healthPort: settings.healthPort,
    events,
    operator,
    loops: [...bridge.loops, leader],
    checks: [...bridge.checks, ...configuration.checks],
    stopAgents: () => agents.stopAgents(),
    leaseLost: lease.lost,
    async close() {
      bridge.close();
      await lease.close();
      await machines.pool.close();
      await http.close();
      await transport.close();
    },
  };
}

/** `revision`: the one whose spec counts, instead of the workflow's own. */
type RunWorkflow = ObjectRef & { readonly revision?: string };

/** In a pod: what other pods reach it by. */
const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((found = []) =>
    found.flatMap(({ address, internal, scopeid = 0 }) => (internal || scopeid > 0 ? [] : [address])),
  );
