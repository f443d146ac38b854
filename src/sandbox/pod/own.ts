import { type Clock, systemClock } from '../../kube/clock.ts';
import { isKubeError, KubeError } from '../../kube/errors.ts';
import type { ExecConnection } from '../../kube/exec-connection.ts';
import { SANDBOX_CONTAINER } from '../../kube/isolated-pod.ts';
import { NETWORK_POLICY, POD, type Pod } from '../../kube/kinds.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { KubeClient } from '../../kube/port.ts';
import { proveIsolated, targetsOn } from '../egress/proof.ts';
import { type Sandbox, SandboxUnavailableError } from '../port.ts';
import { type OwnPodWish, ownNetworkPolicy, ownPod } from './manifest.ts';
import { podSandbox } from './pod.ts';

export interface OwnPodOptions {
  readonly kube: KubeClient;
  readonly connection: ExecConnection;
  /** Whether the pod must be shown to reach nothing before it is handed over. */
  readonly prove: boolean;
  /** The API server's address, tried from inside; undefined where only its name is known. */
  readonly apiServer?: { readonly address: string; readonly port: number } | undefined;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Default 300 s (POD_START_TIMEOUT). */
  readonly startTimeoutMs?: number;
}

/**
 * Makes a pod and waits until commands run in it and reach nothing. The pod's NetworkPolicy is there before it and
 * goes with it.
 * Rejects with `SandboxUnavailableError` or the signal's reason; then nothing is left behind.
 */
export async function openOwnPod(
  wish: OwnPodWish,
  options: OwnPodOptions,
  signal?: AbortSignal,
): Promise<Sandbox> {
  const { kube, connection, logger, clock = systemClock, startTimeoutMs } = options;
  const { namespace, name } = wish;
  signal?.throwIfAborted();
  const pod = await makePod(kube, wish, logger);
  const sandbox = podSandbox({
    ...{ connection, client: kube, namespace, pod: name, container: SANDBOX_CONTAINER, logger, clock },
    ref: { kind: 'Pod', name, namespace },
    ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
    ...(startTimeoutMs === undefined ? {} : { startTimeoutMs }),
    deletePod: () => deletePod(kube, pod),
  });
  try {
    await sandbox.start(signal);
    if (options.prove) await prove(sandbox, { ...options, clock }, signal);
    return sandbox;
  } catch (error) {
    await sandbox.cleanup();
    throw error;
  }
}

async function prove(
  sandbox: Sandbox,
  { kube, apiServer, logger, clock }: OwnPodOptions & { readonly clock: Clock },
  signal: AbortSignal | undefined,
): Promise<void> {
  const pod = await kube.get(POD, sandbox.ref, signal && { signal });
  logger.info({}, 'showing that the pod reaches no network');
  const onOpen = (what: string) => logger.info({}, `not isolated yet: ${what}`);
  await proveIsolated(sandbox, targetsOn(pod?.status?.hostIP, apiServer), { clock, onOpen }, signal);
}

/** Without the caller's signal: a request given up half-way would leave it unknown whether there is a pod. */
async function makePod(kube: KubeClient, wish: OwnPodWish, logger: Logger): Promise<Pod> {
  const { namespace, name } = wish;
  let what = 'NetworkPolicy';
  try {
    await kube.create(NETWORK_POLICY, ownNetworkPolicy(wish));
    what = 'Pod';
    const pod = await kube.create(POD, ownPod(wish));
    what = 'NetworkPolicy';
    await kube.patch(NETWORK_POLICY, { namespace, name }, { type: 'merge', body: ownedBy(pod) });
    return pod;
  } catch (error) {
    await removeBoth(kube, wish).catch((failure: unknown) =>
      logger.warn({ namespace, pod: name, ...errorFields(failure) }, 'sandbox pod not deleted'),
    );
    if (!(error instanceof KubeError)) throw error;
    throw new SandboxUnavailableError(
      `${what} ${namespace}/${name} of the sandbox cannot be made: ${error.message}`,
      { cause: error },
    );
  }
}

/** Whoever deletes the pod, its policy goes too, and not before. */
const ownedBy = ({ metadata: { name, uid } }: Pod) => ({
  metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }] },
});

/** Idempotent. Throws KubeError. */
async function deletePod(kube: KubeClient, pod: Pod): Promise<void> {
  const { namespace = '', name = '', uid = '' } = pod.metadata;
  try {
    await kube.delete(POD, { namespace, name }, { uid });
  } catch (error) {
    // Another pod has the name already: the one meant is gone.
    if (!isKubeError(error, 'Conflict')) throw error;
  }
}

/** What an attempt may have left: nothing runs in it yet, so the order does not matter. */
async function removeBoth(kube: KubeClient, { namespace, name }: OwnPodWish): Promise<void> {
  await kube.delete(POD, { namespace, name });
  await kube.delete(NETWORK_POLICY, { namespace, name });
}
