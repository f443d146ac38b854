import { expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../crds/meta.ts';
import type { Pod } from '../../kube/kinds.ts';
import { type OwnerState, reapReason } from './reap-reason.ts';

const now = new Date('2026-01-01T00:00:00Z');
const later = '2026-01-01T00:00:01Z';
const lingering = {
  labels: { [LABELS.role]: 'active' },
  annotations: { [ANNOTATIONS.sessionId]: 's' },
};

interface Given {
  readonly run?: OwnerState;
  readonly reapBy?: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
}

function reasonFor({
  run = 'Live',
  labels,
  annotations,
  deletionTimestamp,
  ...rest
}: Given): string | undefined {
  const reapBy = 'reapBy' in rest ? rest.reapBy : later;
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      labels: labels ?? { [LABELS.role]: 'active', [LABELS.run]: 'uid' },
      annotations: { ...(reapBy === undefined ? {} : { [ANNOTATIONS.reapBy]: reapBy }), ...annotations },
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { containers: [] },
  };
  return reapReason(pod, run, now)?.reason;
}

it.each<[string, Given, string | undefined]>([
  ['of a live run within its time stays', {}, undefined],
  ['at its deadline goes', { reapBy: now.toISOString() }, 'SandboxExpired'],
  ['of a run that is gone goes', { run: 'Gone' }, 'SandboxWithoutRun'],
  ['of a run that has ended goes', { run: 'Ended' }, 'SandboxOfEndedRun'],
  ['whose run could not be asked for stays', { run: 'Unknown' }, undefined],
  [
    'whose run could not be asked for goes at its deadline',
    { run: 'Unknown', reapBy: now.toISOString() },
    'SandboxExpired',
  ],
  ['that names no run goes', { labels: { [LABELS.role]: 'active' }, run: 'Unknown' }, 'SandboxWithoutRun'],
  ['that lingers stays with its session, though no run has it', { ...lingering }, undefined],
  ['whose session could not be asked for stays', { ...lingering, run: 'Unknown' }, undefined],
  ['that lingers for a session that is gone goes', { ...lingering, run: 'Gone' }, 'SandboxWithoutSession'],
  ['that lingers goes at its deadline', { ...lingering, reapBy: now.toISOString() }, 'SandboxExpired'],
  ['that lingers without a deadline goes', { ...lingering, reapBy: undefined }, 'SandboxWithoutRun'],
  ['with a deadline that is none stays with its live run', { reapBy: 'soon' }, undefined],
  ['that is going already is left alone', { run: 'Gone', deletionTimestamp: later }, undefined],
  ['that stands by is left alone', { run: 'Gone', labels: { [LABELS.role]: 'standby' } }, undefined],
])('a pod %s', (_name, given, expected) => {
  expect(reasonFor(given)).toBe(expected);
});
