import { describe, expect, it } from 'vitest';
import { standbyLabels } from '../../crds/labels.ts';
import { ANNOTATIONS, LABELS } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Deployment, Pod } from '../../kube/kinds.ts';
import { decide } from './decide.ts';
import { deploymentFor, networkPolicyFor } from './manifests.ts';
import type { Observed } from './observe.ts';

const now = new Date('2026-01-01T00:00:00Z');
const POD_SETTINGS = { image: 'i:1', workspace: { sizeLimit: '1Gi' } };

const aPool = (
  rest: {
    readonly spec?: Partial<SandboxPool['spec']>;
    readonly status?: SandboxPool['status'];
    readonly name?: string;
  } = {},
): SandboxPool => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: rest.name ?? 'warm', namespace: 'sandboxes', uid: 'pool-uid', generation: 3 },
  spec: {
    replicas: 2,
    backend: 'Pod',
    pod: POD_SETTINGS,
    claim: { timeout: '0s', createOnEmpty: false },
    maxActive: '30m',
    linger: { duration: '5m', max: 2 },
    egressProbe: { enabled: true, period: '30s', targets: [] },
    ...rest.spec,
  },
  ...(rest.status === undefined ? {} : { status: rest.status }),
});

function aPod(
  name: string,
  rest: { readonly status?: Pod['status']; readonly metadata?: Partial<Pod['metadata']> } = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name, uid: name, labels: standbyLabels('warm') },
      annotations: { [ANNOTATIONS.egressBlockedUntil]: '2026-01-01T00:05:00Z' },
      ...rest.metadata,
    },
    spec: { containers: [{ name: 'sandbox' }] },
    status: rest.status ?? {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
    },
  };
}

const active = { [LABELS.pool]: 'warm', [LABELS.role]: 'active' };
const pulls: Pod['status'] = {
  phase: 'Pending',
  containerStatuses: [
    {
      name: 'sandbox',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
    },
  ],
};

/** A pool at rest, as the API server shows it. */
function atRest(rest: Partial<Observed> = {}): Observed {
  const pool = rest.pool ?? aPool();
  const wanted = deploymentFor(pool, POD_SETTINGS);
  const deployment: Deployment = {
    ...wanted,
    metadata: { ...wanted.metadata, generation: 5 },
    status: { observedGeneration: 5, replicas: pool.spec.replicas, updatedReplicas: pool.spec.replicas },
  };
  return { pool, deployment, networkPolicy: networkPolicyFor(pool), pods: [aPod('a'), aPod('b')], ...rest };
}

const kinds = (observed: Observed) => decide(observed, now).actions.map(({ kind }) => kind);
const condition = (observed: Observed, type: string) =>
  decide(observed, now).status.conditions?.find((found) => found.type === type);

describe('what is done', () => {
  it('nothing at rest', () => {
    expect(kinds(atRest())).toEqual([]);
  });
  it('the network is shut before the first pod can start', () => {
    expect(kinds(atRest({ deployment: undefined, networkPolicy: undefined, pods: [] }))).toEqual([
      'ApplyNetworkPolicy',
      'ApplyDeployment',
    ]);
  });
  it('a policy that somebody opened is shut', () => {
    const policy = networkPolicyFor(aPool());
    expect(kinds(atRest({ networkPolicy: { ...policy, spec: { ...policy.spec, egress: [{}] } } }))).toEqual([
      'ApplyNetworkPolicy',
    ]);
  });
  it('another image or number of replicas is applied', () => {
    const { deployment } = atRest();
    expect(
      kinds(atRest({ pool: aPool({ spec: { pod: { ...POD_SETTINGS, image: 'i:2' } } }), deployment })),
    ).toEqual(['ApplyDeployment']);
    expect(kinds(atRest({ pool: aPool({ spec: { replicas: 5 } }), deployment }))).toEqual([
      'ApplyDeployment',
    ]);
  });
  it('standby pods that have ended are deleted, those of runs and those that are going are not', () => {
    const failed: Pod['status'] = { phase: 'Failed', reason: 'Evicted' };
    const pods = [
      aPod('a', { status: failed }),
      aPod('b', { status: failed, metadata: { labels: active } }),
      aPod('c', { status: failed, metadata: { deletionTimestamp: now.toISOString() } }),
    ];
    expect(decide(atRest({ pods }), now).actions).toMatchObject([
      { kind: 'DeletePod', pod: { metadata: { name: 'a' } } },
    ]);
  });
  it('a pod that ends by itself is replaced at once the first time, and later only after a pause', () => {
    const failed: Pod['status'] = { phase: 'Failed', reason: 'Evicted', message: 'low on memory' };
    const pods = [aPod('a'), aPod('b', { status: failed })];
    const first = decide(atRest({ pods }), now);
    expect(first.actions.map(({ kind }) => kind)).toEqual(['DeletePod']);
    expect(first.status.setback).toMatchObject({ failures: 1, held: 0 });
    const again = atRest({ pool: aPool({ status: first.status }), pods });
    const second = decide(again, new Date(now.getTime() + 1_000));
    expect(second.actions).toMatchObject([
      { kind: 'ApplyDeployment', object: { spec: { replicas: 1 } } },
      { kind: 'DeletePod', reason: 'Evicted' },
    ]);
    expect(second).toMatchObject({ requeueAfterMs: 5_001, status: { setback: { failures: 2, held: 1 } } });
    expect(second.status.conditions).toMatchObject([
      {
        type: 'Ready',
        status: 'True',
        message: expect.stringMatching(/Evicted: pod b ended.*low on memory/),
      },
      { type: 'Progressing', status: 'False', reason: 'Evicted' },
      { type: 'EgressBlocked' },
    ]);
    const over = atRest({ pool: aPool({ status: second.status }), pods: [aPod('a')] });
    const { deployment } = over;
    const held = deployment && { ...deployment, spec: { ...deployment.spec, replicas: 1 } };
    const third = decide({ ...over, deployment: held }, new Date(now.getTime() + 6_001));
    expect(third.actions).toMatchObject([{ kind: 'ApplyDeployment', object: { spec: { replicas: 2 } } }]);
  });
  it('of those that linger the oldest go, beyond what the pool keeps', () => {
    const lingering = (name: string, reapBy: string) =>
      aPod(name, {
        metadata: {
          labels: active,
          annotations: { [ANNOTATIONS.sessionId]: name, [ANNOTATIONS.reapBy]: reapBy },
        },
      });
    const pods = [
      lingering('young', '2026-01-01T00:05:00Z'),
      lingering('old', '2026-01-01T00:01:00Z'),
      lingering('middle', '2026-01-01T00:03:00Z'),
      aPod('a'),
      aPod('b'),
    ];
    expect(decide(atRest({ pods }), now).actions).toMatchObject([
      { kind: 'EvictPod', pod: { metadata: { name: 'old' } } },
    ]);
  });
  it('nothing for a pool that is being deleted', () => {
    const pool = aPool();
    const going = { ...pool, metadata: { ...pool.metadata, deletionTimestamp: now.toISOString() } };
    expect(kinds(atRest({ pool: going, deployment: undefined, networkPolicy: undefined }))).toEqual([]);
  });
  it('nothing to objects of the name that are not its own', () => {
    const { deployment } = atRest();
    const foreign = deployment && {
      ...deployment,
      metadata: { ...deployment.metadata, ownerReferences: [] },
    };
    const decision = decide(atRest({ deployment: foreign }), now);
    expect(decision).toMatchObject({ actions: [], requeueAfterMs: expect.any(Number) });
    expect(decision.status.conditions?.[0]).toMatchObject({
      type: 'Ready',
      reason: 'SandboxesReady',
      message: expect.stringContaining('NameTaken'),
    });
  });
});

describe('what the status says', () => {
  it('counts who stands by, is ready, claimed and lingering; what is going or has ended counts nowhere', () => {
    const pods = [
      aPod('ready'),
      aPod('starting', { status: { phase: 'Pending' } }),
      aPod('going', { metadata: { deletionTimestamp: now.toISOString() } }),
      aPod('ended', { status: { phase: 'Failed' } }),
      aPod('claimed', { metadata: { labels: active } }),
      aPod('lingering', { metadata: { labels: active, annotations: { [ANNOTATIONS.sessionId]: 's' } } }),
    ];
    expect(decide(atRest({ pods }), now).status).toMatchObject({
      observedGeneration: 3,
      replicas: 2,
      ready: 1,
      claimed: 1,
      lingering: 1,
      selector: 'hummingbird.dev/pool=warm,hummingbird/role=standby',
    });
  });

  it.each<[string, Partial<Observed>, [string, string], [string, string]]>([
    ['complete', {}, ['True', 'SandboxesReady'], ['False', 'Complete']],
    [
      'a claim took one',
      { pods: [aPod('a'), aPod('b', { status: { phase: 'Pending' } })] },
      ['True', 'SandboxesReady'],
      ['True', 'Filling'],
    ],
    ['nothing yet', { pods: [], deployment: undefined }, ['False', 'Filling'], ['True', 'RollingOut']],
    [
      'no image',
      { pods: [aPod('a', { status: pulls }), aPod('b', { status: pulls })] },
      ['False', 'ImagePullBackOff'],
      ['False', 'ImagePullBackOff'],
    ],
    [
      'one broken of two',
      { pods: [aPod('a'), aPod('b', { status: pulls })] },
      ['True', 'SandboxesReady'],
      ['False', 'ImagePullBackOff'],
    ],
    [
      'scaled to 0',
      { pool: aPool({ spec: { replicas: 0 } }), pods: [] },
      ['False', 'ScaledToZero'],
      ['False', 'Complete'],
    ],
  ])('%s', (_name, rest, ready, progressing) => {
    const observed = atRest(rest);
    const short = (type: string) => [condition(observed, type)?.status, condition(observed, type)?.reason];
    expect(short('Ready')).toEqual(ready);
    expect(short('Progressing')).toEqual(progressing);
  });

  it('names the broken pod and how many more', () => {
    const pods = [aPod('a', { status: pulls }), aPod('b', { status: pulls })];
    expect(condition(atRest({ pods }), 'Ready')?.message).toBe(
      '0 of 2 sandboxes can be claimed; ImagePullBackOff: pod a (and 1 more): no such image',
    );
  });

  it('a pod without proof stands by and cannot be claimed', () => {
    const observed = atRest({ pods: [aPod('a'), aPod('b', { metadata: { annotations: {} } })] });
    expect(decide(observed, now).status).toMatchObject({ replicas: 2, ready: 1 });
    expect(condition(observed, 'Progressing')).toMatchObject({ status: 'True', reason: 'Filling' });
  });

  it('a virtual machine pool is not served', () => {
    const { pod: _pod, ...spec } = aPool().spec;
    const pool = { ...aPool(), spec: { ...spec, backend: 'VirtualMachineInstance' as const } };
    expect(
      condition(atRest({ pool, deployment: undefined, networkPolicy: undefined, pods: [] }), 'Ready')?.reason,
    ).toBe('BackendNotSupported');
  });

  it('keeps the time of a condition that stays as it was', () => {
    const before = '2025-01-01T00:00:00Z';
    const conditions = [
      { type: 'Ready', status: 'True' as const, reason: 'x', message: '', lastTransitionTime: before },
      { type: 'Progressing', status: 'True' as const, reason: 'x', message: '', lastTransitionTime: before },
    ];
    const observed = atRest({ pool: aPool({ status: { conditions } }) });
    expect(condition(observed, 'Ready')?.lastTransitionTime).toBe(before);
    expect(condition(observed, 'Progressing')?.lastTransitionTime).toBe(now.toISOString());
  });
});

describe('the pods of a pool', () => {
  const { spec } = deploymentFor(aPool(), POD_SETTINGS).spec.template;
  it('invariant 4: have no token, no privilege, no way to write but /tmp, and no deadline that counts while they stand by', () => {
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'sandbox',
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [{ mountPath: '/tmp' }],
        },
      ],
    });
    expect(spec.activeDeadlineSeconds).toBeUndefined();
    expect(JSON.stringify(spec)).not.toMatch(/runAsUser|secret|hostPath|"env"/);
  });
  it('have labels even when the pool has the longest name', () => {
    const { metadata, spec: long } = deploymentFor(aPool({ name: 'p'.repeat(253) }), POD_SETTINGS);
    expect(metadata.name?.length).toBeLessThanOrEqual(63);
    expect(long.selector.matchLabels?.[LABELS.pool]?.length).toBeLessThanOrEqual(63);
  });
});
