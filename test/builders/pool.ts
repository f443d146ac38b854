import { createPoolController } from '../../src/controllers/pool/controller.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../src/crds/sandbox-pool.ts';
import type { Controller } from '../../src/kube/controller.ts';
import type { Informer } from '../../src/kube/informer.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD, type Pod } from '../../src/kube/kinds.ts';
import { type KubeAccess, kubeAccess, type TwoNamespaces, twoNamespaces } from './kube-access.ts';

export const SANDBOX_IMAGE = 'hummingbird.test/sandbox:1';

/** A pool of small pods; what is not named is the API's default. */
export function aPool(
  name: string,
  namespace: string,
  spec: {
    readonly replicas?: number;
    readonly image?: string;
    readonly claim?: Partial<SandboxPool['spec']['claim']>;
    readonly maxActive?: string;
    readonly linger?: SandboxPool['spec']['linger'];
  } = {},
): SandboxPool {
  const { image = SANDBOX_IMAGE, replicas = 3, claim, maxActive = '30m', linger } = spec;
  const resources = { requests: { cpu: '1m', memory: '8Mi' }, limits: { cpu: '1', memory: '256Mi' } };
  return {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'SandboxPool',
    metadata: { name, namespace },
    spec: {
      replicas,
      backend: 'Pod',
      pod: { image, resources, workspace: { sizeLimit: '64Mi' } },
      claim: { timeout: '0s', createOnEmpty: false, ...claim },
      maxActive,
      linger: linger ?? { duration: '5m', max: 2 },
      // A proof takes 5 s, and most tests are about something else.
      egressProbe: { enabled: false, period: '30s', targets: [] },
    },
  };
}

/** A running SandboxPool controller on namespaces of the test's own. */
export interface PoolWorld extends KubeAccess {
  readonly namespaces: TwoNamespaces;
  readonly pods: Informer<Pod>;
  readonly controller: Controller;
  /** Creates a pool and waits until as many of its pods can be claimed. */
  filledPool(name: string, replicas: number): Promise<SandboxPool>;
  pool(name: string): Promise<SandboxPool | undefined>;
}

export async function poolWorld(): Promise<PoolWorld> {
  const access = await kubeAccess();
  const namespaces = await twoNamespaces();
  const namespace = namespaces.sandboxes;
  const [pools, pods, deployments, networkPolicies] = await Promise.all([
    access.informer(SANDBOX_POOLS, namespace),
    access.informer(POD, namespace),
    access.informer(DEPLOYMENT, namespace),
    access.informer(NETWORK_POLICY, namespace),
  ]);
  const controller = createPoolController({
    kube: access.kube,
    events: access.events,
    pools,
    pods,
    deployments,
    networkPolicies,
  });
  await controller.start();
  const pool = (name: string) => access.kube.get(SANDBOX_POOLS, { namespace, name });
  return {
    ...access,
    namespaces,
    pods,
    controller,
    pool,
    async filledPool(name, replicas) {
      await access.kube.create(SANDBOX_POOLS, aPool(name, namespace, { replicas }));
      return until(`pool ${name} has ${replicas} ready`, async () => {
        const found = await pool(name);
        return found?.status?.ready === replicas ? found : undefined;
      });
    },
    async close() {
      await controller.stop();
      await namespaces.remove();
      await access.close();
    },
  };
}

/** The first answer that is not undefined or false; throws when none comes within `ms`. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  ms = 60_000,
): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
