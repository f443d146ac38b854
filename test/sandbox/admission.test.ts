import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { apiRequest } from '../../hack/cluster/api.ts';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { installDefinitions } from '../../hack/operator/install.ts';
import { deploymentFor } from '../../src/controllers/pool/manifests.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { DEPLOYMENT, POD, type Pod } from '../../src/kube/kinds.ts';
import { ownPod } from '../../src/sandbox/pod/manifest.ts';
import { type KubeAccess, kubeAccess } from '../builders/kube-access.ts';
import { aPool, SANDBOX_IMAGE, until } from '../builders/pool.ts';
import { createNamespace, deleteNamespace, sharedCluster } from '../cluster/shared.ts';

let cluster: Cluster;
let access: KubeAccess;
/** Both are bound to config/admission; only the second one enforces Pod Security as well. */
const namespaces = { bound: '', restricted: '' };

beforeAll(async () => {
  cluster = await sharedCluster();
  access = await kubeAccess();
  await installDefinitions(cluster);
  namespaces.bound = await createNamespace(cluster, 'privileged');
  namespaces.restricted = await createNamespace(cluster, 'restricted');
  for (const name of Object.values(namespaces))
    await cluster.kubectl(['label', 'namespace', name, 'hummingbird.dev/sandboxes=true']);
  // A policy is in force a moment after it was made.
  await until('a weak pod is refused', async () => (await tryPod({ spec: { hostPID: true } })).status >= 400);
});
afterAll(async () => {
  for (const name of Object.values(namespaces)) if (name !== '') await deleteNamespace(cluster, name);
  await access?.close();
});

const pool = (namespace: string) => {
  const made = aPool('warm', namespace, { replicas: 1 });
  const { pod } = made.spec;
  if (pod === undefined) throw new Error('the pool has no pods');
  return { pool: made, settings: pod };
};

/** The pool's own pod with changes, as somebody would make it by hand. */
function weakened({ spec = {}, container = {} }: Weakness): unknown {
  const { pool: made, settings } = pool(namespaces.bound);
  const { template } = deploymentFor(made, settings).spec;
  const [first] = template.spec.containers;
  const containers = [{ ...first, ...container }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'try' },
    spec: { ...template.spec, containers, ...spec },
  };
}
interface Weakness {
  readonly spec?: object;
  readonly container?: object;
}

async function tryPod(weakness: Weakness): Promise<{ status: number; message: string }> {
  const path = `/api/v1/namespaces/${namespaces.bound}/pods?dryRun=All`;
  const answer = await apiRequest(cluster.controlPlane.access, path, {
    ...{ method: 'POST', body: weakened(weakness), timeoutMs: 60_000 },
  });
  const { message = '' }: { message?: string } = JSON.parse(answer.body);
  return { status: answer.status, message };
}

const shut = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};
const volume = (source: object) => ({ spec: { volumes: [{ name: 'workspace', ...source }] } });
const pod = (securityContext: object) => ({
  spec: {
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...securityContext },
  },
});
const context = (change: object) => ({ container: { securityContext: { ...shut, ...change } } });

describe('config/admission', () => {
  it('accepts the pod of a pool as it is', async () => {
    expect(await tryPod({})).toEqual({ status: 201, message: '' });
  });

  it.each<[string, Weakness, RegExp]>([
    [
      'with a token',
      { spec: { automountServiceAccountToken: true } },
      /automountServiceAccountToken must be false/,
    ],
    [
      'that leaves the token to the default',
      { spec: { automountServiceAccountToken: undefined } },
      /automountServiceAccountToken/,
    ],
    [
      'of another ServiceAccount',
      { spec: { serviceAccountName: 'builder' } },
      /serviceaccount|serviceAccountName must be left out/,
    ],
    [
      'with the services in its environment',
      { spec: { enableServiceLinks: true } },
      /enableServiceLinks must be false/,
    ],
    ['with a folder of the node', volume({ hostPath: { path: '/' } }), /emptyDirs with a sizeLimit only/],
    ['with a Secret', volume({ secret: { secretName: 'x' } }), /emptyDirs with a sizeLimit only/],
    ['with a ConfigMap', volume({ configMap: { name: 'x' } }), /emptyDirs with a sizeLimit only/],
    [
      'with a projected token',
      volume({ projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }),
      /emptyDirs with a sizeLimit only/,
    ],
    [
      'with a claim',
      volume({ persistentVolumeClaim: { claimName: 'x' } }),
      /emptyDirs with a sizeLimit only/,
    ],
    ['with /tmp without a limit', volume({ emptyDir: {} }), /emptyDirs with a sizeLimit only/],
    ['with a variable', { container: { env: [{ name: 'A', value: 'b' }] } }, /no environment/],
    [
      'with a variable from a Secret',
      { container: { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }] } },
      /no environment/,
    ],
    [
      'with all of a Secret as variables',
      { container: { envFrom: [{ secretRef: { name: 'x' } }] } },
      /no environment/,
    ],
    ['in the network of the node', { spec: { hostNetwork: true } }, /shares no namespace/],
    ['among the processes of the node', { spec: { hostPID: true } }, /shares no namespace/],
    ['with the IPC of the node', { spec: { hostIPC: true } }, /shares no namespace/],
    [
      'with a port of the node',
      { container: { ports: [{ containerPort: 80, hostPort: 80 }] } },
      /shares no namespace/,
    ],
    ['without a security context', { spec: { securityContext: undefined } }, /runAsNonRoot must be true/],
    ['that may be root', pod({ runAsNonRoot: false }), /runAsNonRoot must be true/],
    ['that is root', pod({ runAsUser: 0 }), /runAsNonRoot must be true/],
    ['whose container may be root', context({ runAsNonRoot: false }), /runAsNonRoot must be true/],
    ['whose container is root', context({ runAsUser: 0 }), /runAsNonRoot must be true/],
    ['without seccomp', pod({ seccompProfile: undefined }), /seccompProfile.type must be/],
    ['with seccomp off', pod({ seccompProfile: { type: 'Unconfined' } }), /seccompProfile.type must be/],
    [
      'whose container has seccomp off',
      context({ seccompProfile: { type: 'Unconfined' } }),
      /seccompProfile.type must be/,
    ],
    [
      'that may gain privileges',
      context({ allowPrivilegeEscalation: undefined }),
      /allowPrivilegeEscalation must be false/,
    ],
    ['that is privileged', context({ privileged: true, allowPrivilegeEscalation: true }), /privileged/],
    ['without dropped capabilities', context({ capabilities: undefined }), /capabilities must be dropped/],
    [
      'with some capabilities dropped',
      context({ capabilities: { drop: ['NET_RAW'] } }),
      /capabilities must be dropped/,
    ],
    [
      'with one added again',
      context({ capabilities: { drop: ['ALL'], add: ['NET_RAW'] } }),
      /capabilities must be dropped/,
    ],
    [
      'with a writable root',
      context({ readOnlyRootFilesystem: false }),
      /readOnlyRootFilesystem must be true/,
    ],
    [
      'without a security context of its container',
      { container: { securityContext: undefined } },
      /refused|denied|must be/,
    ],
    ['without a limit of memory', { container: { resources: {} } }, /must bound the memory/],
    [
      'with a second container',
      { spec: { initContainers: [{ name: 'first', image: SANDBOX_IMAGE, securityContext: shut }] } },
      /is one container/,
    ],
  ])('refuses a pod %s', async (_, weakness, message) => {
    const answer = await tryPod(weakness);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.message).toMatch(message);
  });

  it('refuses an ephemeral container in a sandbox that runs', async () => {
    const { bound } = namespaces;
    await access.kube.create(POD, { ...Object(weakened({})), metadata: { namespace: bound, name: 'real' } });
    const ephemeral = { ephemeralContainers: [{ name: 'debug', image: SANDBOX_IMAGE, command: ['sh'] }] };
    const patch = [
      'patch',
      'pod',
      'real',
      '-n',
      bound,
      '--subresource=ephemeralcontainers',
      '--type=strategic',
    ];
    await expect(cluster.kubectl([...patch, '-p', JSON.stringify({ spec: ephemeral })])).rejects.toThrow(
      /takes no ephemeral containers/,
    );
  });

  it('refuses a NetworkPolicy that allows egress, and takes one that allows none', async () => {
    const policy = (egress: readonly object[]) =>
      JSON.stringify({
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'p' } },
        spec: { podSelector: {}, policyTypes: ['Egress'], egress },
      });
    const create = ['create', '-n', namespaces.bound, '-f', '-'];
    await expect(cluster.kubectl(create, policy([{}]))).rejects.toThrow(/may allow no egress/);
    await cluster.kubectl(create, policy([]));
  });
});

describe('what the API server has of a sandbox', () => {
  /** Fields that spec and Pod Security ask for, each explicit; `undefined` is one that must not be there. */
  const FIELDS: readonly (readonly [string, unknown])[] = [
    ['automountServiceAccountToken', false],
    ['enableServiceLinks', false],
    ['hostNetwork', undefined],
    ['hostPID', undefined],
    ['hostIPC', undefined],
    ['shareProcessNamespace', undefined],
    ['initContainers', undefined],
    ['securityContext', { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }],
    ['containers.length', 1],
    ['containers.0.command', ['sleep', 'infinity']],
    ['containers.0.workingDir', '/tmp'],
    ['containers.0.env', undefined],
    ['containers.0.envFrom', undefined],
    ['containers.0.securityContext', shut],
    ['containers.0.volumeMounts', [{ name: 'workspace', mountPath: '/tmp' }]],
    ['volumes.length', 1],
    ['dnsPolicy', 'None'],
  ];
  const POOL: typeof FIELDS = [
    ['restartPolicy', 'Always'],
    // It counts from creation, and would end a pod that merely stood by.
    ['activeDeadlineSeconds', undefined],
    ['containers.0.resources.limits', { cpu: '1', memory: '256Mi' }],
    ['volumes.0.emptyDir', { sizeLimit: '64Mi' }],
    ['runtimeClassName', undefined],
  ];
  const DIRECT: typeof FIELDS = [
    ['restartPolicy', 'Never'],
    ['activeDeadlineSeconds', 1800],
    ['containers.0.resources.requests', { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '256Mi' }],
    ['containers.0.resources.limits', { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' }],
    ['volumes.0.emptyDir', { sizeLimit: '2Gi' }],
  ];
  const fields = (found: Pod, table: typeof FIELDS) =>
    table.map(([path]) => [
      path,
      path.split('.').reduce((value: unknown, key) => Object(value)[key], found.spec),
    ]);

  it('from a pool, which a ReplicaSet makes under Pod Security and config/admission', async () => {
    const { restricted: namespace } = namespaces;
    const { pool: made, settings } = pool(namespace);
    const owner = await access.kube.create(SANDBOX_POOLS, made);
    await access.kube.create(DEPLOYMENT, deploymentFor(owner, settings));
    const found = await until('the pod is made', async () => {
      const { items } = await access.kube.list(POD, {
        namespace,
        labelSelector: 'hummingbird.dev/pool=warm',
      });
      return items[0];
    });
    expect(fields(found, [...FIELDS, ...POOL])).toEqual([...FIELDS, ...POOL]);
  });

  it('from a pool with a runtimeClassName, which the kubelet starts with that runtime or not at all', async () => {
    const { restricted: namespace } = namespaces;
    const podWith = async (handler: string): Promise<Pod> => {
      const name = `${handler}-${namespace}`;
      const runtime = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name }, handler };
      await cluster.kubectl(['apply', '-f', '-'], JSON.stringify(runtime));
      onTestFinished(async () => void (await cluster.kubectl(['delete', 'runtimeclass', name])));
      const made = aPool(handler, namespace, { replicas: 1 });
      const { settings } = pool(namespace);
      const owner = await access.kube.create(SANDBOX_POOLS, made);
      await access.kube.create(DEPLOYMENT, deploymentFor(owner, { ...settings, runtimeClassName: name }));
      return until('the pod is made', async () => {
        const { items } = await access.kube.list(POD, {
          ...{ namespace, labelSelector: `hummingbird.dev/pool=${handler}` },
        });
        return items[0];
      });
    };
    const [present, absent] = await Promise.all([podWith('runc'), podWith('no-such-runtime')]);
    expect(present.spec?.runtimeClassName).toBe(`runc-${namespace}`);
    const phaseOf = async ({ metadata: { name = '' } }: Pod) =>
      (await access.kube.get(POD, { namespace, name }))?.status?.phase;
    await until('it runs', async () => (await phaseOf(present)) === 'Running');
    const refusal = 'no runtime for "no-such-runtime" is configured';
    const events = ['get', 'events', '-n', namespace, '-o', 'jsonpath={.items[*].message}'];
    await until('the other one is refused', async () => (await cluster.kubectl(events)).includes(refusal));
    expect(await phaseOf(absent)).toBe('Pending');
  });

  it('that is one run’s own from its beginning', async () => {
    const { restricted: namespace } = namespaces;
    const wish = { namespace, name: 'own', image: SANDBOX_IMAGE, runUid: 'r', workflow: 'w' };
    const found = await access.kube.create(POD, ownPod({ ...wish, activeDeadlineSeconds: 1800 }));
    expect(fields(found, [...FIELDS, ...DIRECT])).toEqual([...FIELDS, ...DIRECT]);
  });
});
