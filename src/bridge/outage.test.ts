import { describe, expect, it } from 'vitest';
import { ManualClock } from '../kube/clock.ts';
import { KubeError } from '../kube/errors.ts';
import { silentLogger } from '../kube/log.ts';
import { GitLabAwayError } from './observe.ts';
import { type OutageDependencies, trackOutage } from './outage.ts';

/** An API server and a GitLab that fail until told otherwise, and how often each was asked. */
function world() {
  const clock = new ManualClock(new Date('2026-03-01T12:00:00Z'));
  const down = { kube: true, gitlab: true };
  const asked = { kube: 0, gitlab: 0 };
  const probe = (which: 'kube' | 'gitlab') => async () => {
    asked[which] += 1;
    if (down[which]) throw new Error(`${which} is away`);
  };
  const outage = trackOutage({
    kube: { list: probe('kube') },
    gitlab: { threads: { ping: probe('gitlab') } },
    namespace: 'agents',
    logger: silentLogger,
    clock,
    random: () => 0.5,
  } as unknown as OutageDependencies); // what is asked of the two is all that they need
  return { clock, down, asked, outage };
}
const kubeAway = new KubeError({ where: 'x', message: 'away', reason: 'Unreachable' });
const kubeRefuses = new KubeError({ where: 'x', message: 'no', reason: 'Invalid' });
const gitlabAway = new GitLabAwayError('away');
const running = () => new AbortController().signal;

describe('an outage', () => {
  it('is none when the failure concerns one message', async () => {
    const { outage, asked } = world();
    expect(outage.report(kubeRefuses)).toBe(false);
    expect(outage.report(new Error('poison'))).toBe(false);
    await outage.over(running());
    expect(asked).toEqual({ kube: 0, gitlab: 0 });
  });

  it('of GitLab lasts until GitLab answers, and asks nobody else', async () => {
    const { outage, asked, down, clock } = world();
    expect(outage.report(gitlabAway)).toBe(true);
    let over = false;
    const waiting = outage.over(running()).then(() => {
      over = true;
    });
    await clock.advance(20_000);
    expect(over).toBe(false);
    down.gitlab = false;
    await clock.advance(20_000);
    await waiting;
    expect(asked.kube).toBe(0);
    expect(asked.gitlab).toBeGreaterThan(1);
    await outage.over(running());
  });

  it('of both lasts until both answer', async () => {
    const { outage, down, clock } = world();
    outage.report(kubeAway);
    outage.report(gitlabAway);
    let over = false;
    const waiting = outage.over(running()).then(() => {
      over = true;
    });
    down.kube = false;
    await clock.advance(40_000);
    expect(over).toBe(false);
    down.gitlab = false;
    await clock.advance(40_000);
    await waiting;
  });

  it('is not waited for by one that stops', async () => {
    const { outage } = world();
    outage.report(gitlabAway);
    await outage.over(AbortSignal.abort());
  });
});
