import { expect, it } from 'vitest';
import { standbyLabels } from '../../crds/labels.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Pod } from '../../kube/kinds.ts';
import { PODS } from './claimable.ts';
import { refuse } from './refusal.ts';

const now = new Date('2026-01-01T00:01:00Z');
const aPool = (spec: Partial<SandboxPool['spec']> = {}): SandboxPool => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: 'warm', namespace: 'sandboxes' },
  spec: {
    replicas: 1,
    backend: 'Pod',
    pod: { image: 'i', workspace: { sizeLimit: '1Gi' } },
    claim: { timeout: '0s', createOnEmpty: false },
    maxActive: '30m',
    linger: { duration: '5m', max: 2 },
    egressProbe: { enabled: true, period: '30s', targets: [] },
    ...spec,
  },
});
const waits = (reason: string, ageSeconds = 60, labels = standbyLabels('warm')): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'p',
    labels,
    creationTimestamp: new Date(now.getTime() - ageSeconds * 1000).toISOString(),
  },
  spec: { containers: [{ name: 'sandbox' }] },
  status: {
    phase: 'Pending',
    containerStatuses: [
      { name: 'sandbox', ready: false, restartCount: 0, state: { waiting: { reason, message: 'm' } } },
    ],
  },
});

const ready = (): Pod => ({
  ...waits(''),
  status: {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
  },
});

it.each<[string, SandboxPool | undefined, readonly Pod[], number, string, RegExp]>([
  ['there is no pool', undefined, [], 0, 'Unavailable', /sandboxes\/warm does not exist/],
  [
    'the backend is another',
    aPool({ backend: 'VirtualMachineInstance' }),
    [],
    0,
    'Unavailable',
    /backend VirtualMachineInstance/,
  ],
  ['its pods start', aPool(), [waits('ContainerCreating')], 0, 'Waiting', /place 3 in line/],
  ['it has no pods yet', aPool(), [], 0, 'Waiting', /is free/],
  ['it is scaled to 0', aPool({ replicas: 0 }), [], 0, 'Waiting', /scaled to 0/],
  [
    'the image is not pulled, for a short time',
    aPool(),
    [waits('ErrImagePull', 10)],
    0,
    'Waiting',
    /is free/,
  ],
  [
    'the image is not pulled, for long',
    aPool(),
    [waits('ImagePullBackOff')],
    0,
    'Unavailable',
    /ImagePullBackOff: m/,
  ],
  [
    'the image has no valid name',
    aPool(),
    [waits('InvalidImageName', 0)],
    0,
    'Unavailable',
    /InvalidImageName/,
  ],
  [
    'one of two pods may still start',
    aPool(),
    [waits('ImagePullBackOff'), waits('ContainerCreating')],
    0,
    'Waiting',
    /is free/,
  ],
  ['a crash loop may end', aPool(), [waits('CrashLoopBackOff')], 0, 'Waiting', /is free/],
  [
    'the hopeless pod is claimed already',
    aPool(),
    [waits('ImagePullBackOff', 60, {})],
    0,
    'Waiting',
    /is free/,
  ],
  [
    'the one that stands by is not proven isolated',
    aPool(),
    [ready()],
    0,
    'Waiting',
    /is free \(1 stand by whose isolation is not proven yet\); place 3 in line/,
  ],
  [
    'the pool is open',
    {
      ...aPool(),
      status: {
        conditions: [
          {
            ...{ type: 'EgressBlocked', status: 'False', reason: 'EgressOpen', message: 'sandbox p is open' },
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
      },
    },
    [ready()],
    0,
    'Waiting',
    /warm hands nothing out: sandbox p is open; place 3 in line/,
  ],
  [
    'it waits within its timeout',
    aPool({ claim: { timeout: '5s', createOnEmpty: false } }),
    [],
    4_999,
    'Waiting',
    /is free/,
  ],
  [
    'its timeout is over',
    aPool({ claim: { timeout: '5s', createOnEmpty: false } }),
    [],
    5_000,
    'Unavailable',
    /within 5s/,
  ],
])('a run gets nothing because %s', (_name, pool, pods, waitedMs, kind, message) => {
  const refusal = refuse(
    { what: PODS, where: 'sandboxes/warm', pool, objects: pods },
    { ahead: 2, waitedMs },
    { now, pullPatienceMs: 30_000 },
  );
  expect(refusal).toEqual({ kind, message: expect.stringMatching(message) });
});
