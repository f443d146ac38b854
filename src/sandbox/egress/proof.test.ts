import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../kube/clock.ts';
import { type ProbePlan, type ProbeResult, SandboxUnavailableError } from '../port.ts';
import { proveIsolated, targetsOn } from './proof.ts';

const sandbox = {
  ref: { kind: 'Pod' as const, name: 'box', namespace: 'boxes' },
  exec: () => Promise.reject(new Error('the probe is given')),
};
const round = (open: boolean) => [
  {
    subject: 'Kubelet' as const,
    where: '10.0.0.1:10250/tcp',
    open,
    detail: open ? 'connected' : 'timed out',
  },
];
const shut = (rounds: number): ProbeResult => ({
  kind: 'Probed',
  rounds: Array.from({ length: rounds }, () => round(false)),
});

/** Answers in turn, the last one for ever; a clock that goes on while somebody waits. */
async function proof(...answers: ((rounds: number) => ProbeResult)[]) {
  const clock = new ManualClock();
  const plans: ProbePlan[] = [];
  const told: string[] = [];
  const proving = proveIsolated(sandbox, targetsOn('10.0.0.1', undefined), {
    clock,
    onOpen: (what) => told.push(what),
    probe: async (_sandbox, plan) => {
      plans.push(plan);
      return (answers[Math.min(plans.length, answers.length) - 1] ?? shut)(plan.rounds);
    },
  });
  let settled = false;
  const done = proving.finally(() => {
    settled = true;
  });
  done.catch(() => undefined);
  for (let waited = 0; !settled && waited < 200; waited += 1) await clock.advance(500);
  return { done, told, rounds: plans.map(({ rounds }) => rounds), seconds: clock.monotonicMs() / 1000 };
}
const open = (): ProbeResult => ({ kind: 'Probed', rounds: [round(true)] });

describe('a sandbox that is no pool’s', () => {
  it('is handed over when nothing was reached, three times over 5 s', async () => {
    const { done, rounds, told } = await proof(shut);
    await done;
    expect({ rounds, told }).toEqual({ rounds: [1, 3], told: [] });
  });

  it('is waited for while its policy is not enforced yet, which is said once', async () => {
    const { done, rounds, told } = await proof(open, open, shut, open, shut);
    await done;
    expect(rounds).toEqual([1, 1, 1, 3, 1, 3]);
    expect(told).toEqual(['Kubelet 10.0.0.1:10250/tcp: connected']);
  });

  it('is refused when it stays open, with what was reached and what to look at', async () => {
    const { done, seconds } = await proof(open);
    await expect(done).rejects.toBeInstanceOf(SandboxUnavailableError);
    await expect(done).rejects.toThrow(
      'sandbox boxes/box is not isolated: Kubelet 10.0.0.1:10250/tcp: connected; see that the cluster enforces NetworkPolicies',
    );
    expect(seconds).toBeGreaterThanOrEqual(60);
  });

  it('is refused when nothing can be proven', async () => {
    const { done } = await proof(() => ({ kind: 'CannotProbe', why: 'its image has no python3' }));
    await expect(done).rejects.toThrow('cannot be probed: its image has no python3');
  });

  it('is tried against its node, the API server and the metadata services of clouds', () => {
    const targets = targetsOn('10.0.0.1', { address: '10.0.0.2', port: 6443 });
    expect(targets.map(({ name, address, port }) => `${name} ${address} ${port}`)).toEqual([
      'ApiServer 10.0.0.2 6443',
      'Kubelet 10.0.0.1 10250',
      'Dns 10.0.0.1 53',
      'Metadata 169.254.169.254 80',
      'Metadata fd00:ec2::254 80',
    ]);
  });
});
