import { describe, expect, it } from 'vitest';
import type { ContainerStatus, Pod, PodStatus } from '../../kube/kinds.ts';
import { outlook } from './state.ts';

function aPod(status: PodStatus, metadata: Pod['metadata'] = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { uid: 'u1', ...metadata },
    spec: { containers: [{ name: 'sandbox' }] },
    status,
  };
}

function aContainer(state: NonNullable<ContainerStatus['state']>, restartCount = 0): PodStatus {
  return { phase: 'Running', containerStatuses: [{ name: 'sandbox', ready: false, restartCount, state }] };
}

const waiting = (reason: string) =>
  aPod({ ...aContainer({ waiting: { reason, message: 'm' } }), phase: 'Pending' });

describe('what can be expected of a pod', () => {
  it.each<[string, Pod | undefined, string, string]>([
    ['that runs', aPod(aContainer({ running: {} })), 'Running', ''],
    ['that does not exist', undefined, 'Gone', 'does not exist'],
    ['whose name another has', aPod(aContainer({ running: {} }), { uid: 'u2' }), 'Gone', 'taken its name'],
    [
      'that is being deleted',
      aPod(aContainer({ running: {} }), { deletionTimestamp: 'x' }),
      'Gone',
      'being deleted',
    ],
    [
      'that was evicted',
      aPod({ phase: 'Failed', reason: 'Evicted', message: 'disk' }),
      'Gone',
      'Failed, Evicted, disk',
    ],
    [
      'whose container ran out of memory',
      aPod(aContainer({ terminated: { reason: 'OOMKilled', exitCode: 137 } })),
      'Gone',
      'OOMKilled, exit code 137',
    ],
    [
      'without a node',
      aPod({
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' },
        ],
      }),
      'Starting',
      '0/1 nodes',
    ],
    ['that is new', aPod({}), 'Starting', 'not started yet'],
    ['that is being made', waiting('ContainerCreating'), 'Starting', 'ContainerCreating'],
    ['whose image cannot be pulled', waiting('ImagePullBackOff'), 'Starting', 'ImagePullBackOff, m'],
    ['whose image has no valid name', waiting('InvalidImageName'), 'Unusable', 'InvalidImageName'],
    ['whose image may not be pulled', waiting('ErrImageNeverPull'), 'Unusable', 'ErrImageNeverPull'],
  ])('%s', (_name, pod, kind, why) => {
    const result = outlook(pod, 'sandbox', 'u1');
    expect(result.kind).toBe(kind);
    if (result.kind !== 'Running') expect(result.why).toContain(why);
  });

  it('tells a failing start from a slow one', () => {
    expect(outlook(waiting('ErrImagePull'), 'sandbox', 'u1')).toMatchObject({ failing: true });
    expect(outlook(waiting('ContainerCreating'), 'sandbox', 'u1')).toMatchObject({ failing: false });
  });

  it('that lacks the container is unusable', () => {
    expect(outlook(aPod({ phase: 'Running' }), 'other', 'u1').kind).toBe('Unusable');
  });
});
