import { describe, expect, it } from 'vitest';
import type { ContainerStatus, Pod, PodStatus } from './kinds.ts';
import { isUsable, podProblem } from './pod-state.ts';

const RUNNING: ContainerStatus = { name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } };
const READY = { type: 'Ready', status: 'True' } as const;
const waits = (reason: string, message = 'why'): PodStatus => ({
  phase: 'Pending',
  containerStatuses: [
    { name: 'sandbox', ready: false, restartCount: 0, state: { waiting: { reason, message } } },
  ],
});

const aPod = (status: PodStatus | undefined, deletionTimestamp?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  spec: { containers: [{ name: 'sandbox' }] },
  ...(status === undefined ? {} : { status }),
});

describe('a pod is usable', () => {
  const usable: PodStatus = { phase: 'Running', conditions: [READY], containerStatuses: [RUNNING] };
  it('when it runs, is Ready and stays', () => {
    expect(isUsable(aPod(usable))).toBe(true);
  });
  it.each<[string, PodStatus | undefined, string?]>([
    ['without a status', undefined],
    ['Pending', { ...usable, phase: 'Pending' }],
    ['Running but not Ready', { ...usable, conditions: [{ type: 'Ready', status: 'False' }] }],
    ['Running without a Ready condition', { ...usable, conditions: [] }],
    ['being deleted', usable, '2026-01-01T00:00:00Z'],
    [
      'about to be disrupted',
      { ...usable, conditions: [READY, { type: 'DisruptionTarget', status: 'True' }] },
    ],
    ['with a container that is not ready', { ...usable, containerStatuses: [{ ...RUNNING, ready: false }] }],
    [
      'with a container that restarts',
      { ...usable, containerStatuses: [{ ...RUNNING, state: { waiting: {} } }] },
    ],
    ['without container statuses', { ...usable, containerStatuses: [] }],
    ['Failed', { ...usable, phase: 'Failed' }],
  ])('not %s', (_name, status, deleted) => {
    expect(isUsable(aPod(status, deleted))).toBe(false);
  });
});

describe('the problem of a pod', () => {
  it.each<[string, PodStatus | undefined, { reason: string; kind: string } | undefined]>([
    ['none yet', undefined, undefined],
    ['none while its containers are made', waits('ContainerCreating'), undefined],
    ['none while it runs', { phase: 'Running', containerStatuses: [RUNNING] }, undefined],
    ['a pull that failed', waits('ErrImagePull'), { reason: 'ErrImagePull', kind: 'Pull' }],
    ['a pull that is held back', waits('ImagePullBackOff'), { reason: 'ImagePullBackOff', kind: 'Pull' }],
    ['a name that is none', waits('InvalidImageName'), { reason: 'InvalidImageName', kind: 'Permanent' }],
    [
      'an image that is not there and not pulled',
      waits('ErrImageNeverPull'),
      { reason: 'ErrImageNeverPull', kind: 'Permanent' },
    ],
    ['a crash loop', waits('CrashLoopBackOff'), { reason: 'CrashLoopBackOff', kind: 'Other' }],
    [
      'an eviction',
      { phase: 'Failed', reason: 'Evicted', message: 'disk' },
      { reason: 'Evicted', kind: 'Other' },
    ],
    [
      'out of memory',
      {
        phase: 'Running',
        containerStatuses: [
          { ...RUNNING, ready: false, state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } },
        ],
      },
      { reason: 'OOMKilled', kind: 'Other' },
    ],
    [
      'a node that is lost: its containers are said to run, and the pod is not Ready',
      {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'False' }],
        containerStatuses: [RUNNING],
      },
      { reason: 'NodeNotReady', kind: 'Other' },
    ],
    [
      'a node that is about to be drained',
      {
        phase: 'Running',
        conditions: [READY, { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }],
        containerStatuses: [RUNNING],
      },
      { reason: 'DeletionByTaintManager', kind: 'Other' },
    ],
    [
      'no room on any node',
      {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' },
        ],
      },
      { reason: 'Unschedulable', kind: 'Other' },
    ],
  ])('%s', (_name, status, expected) => {
    const problem = podProblem(aPod(status));
    expect(problem && { reason: problem.reason, kind: problem.kind }).toEqual(expected);
  });

  it('says what a crash loop ended with', () => {
    const status: PodStatus = {
      phase: 'Running',
      containerStatuses: [
        {
          ...{ name: 'sandbox', ready: false, restartCount: 4 },
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
          lastState: { terminated: { reason: 'OOMKilled', exitCode: 137 } },
        },
      ],
    };
    expect(podProblem(aPod(status))?.message).toBe('back-off 40s (it ended with OOMKilled, 137)');
  });

  it('is none when it is being deleted', () => {
    expect(podProblem(aPod(waits('ErrImagePull'), '2026-01-01T00:00:00Z'))).toBeUndefined();
  });
});
