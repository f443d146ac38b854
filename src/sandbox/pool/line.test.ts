import { expect, it } from 'vitest';
import { ManualClock } from '../../kube/clock.ts';
import type { SandboxRequest } from '../port.ts';
import { waitingLine } from './line.ts';

const aRequest = (runUid: string, pool = 'warm'): SandboxRequest => ({
  runUid,
  runName: runUid,
  runNamespace: 'agents',
  workflow: 'analyze',
  pool: { namespace: 'sandboxes', name: pool },
  epoch: 1,
  labels: {},
  reapBy: new Date(0),
});

it('runs keep the order in which they came, each pool by itself', () => {
  const line = waitingLine(new ManualClock());
  for (const run of ['a', 'b', 'c']) line.wait(aRequest(run));
  line.wait(aRequest('other', 'cold'));
  line.wait(aRequest('a'));
  expect(['a', 'b', 'c', 'newcomer'].map((run) => line.ahead(aRequest(run)))).toEqual([0, 1, 2, 3]);
  expect(line.ahead(aRequest('other', 'cold'))).toBe(0);
  line.leave('a');
  expect(line.ahead(aRequest('b'))).toBe(0);
});

it('a run that asks no more is forgotten and keeps nobody waiting', async () => {
  const clock = new ManualClock();
  const line = waitingLine(clock);
  line.wait(aRequest('gone'));
  await clock.advance(2_000);
  line.wait(aRequest('b'));
  expect(line.ahead(aRequest('b'))).toBe(1);
  await clock.advance(2_000);
  expect(line.waits(aRequest('gone'))).toBe(false);
  expect(line.waits(aRequest('b'))).toBe(true);
  expect(line.ahead(aRequest('b'))).toBe(0);
});

it('tells how long a run has waited', async () => {
  const clock = new ManualClock();
  const line = waitingLine(clock);
  expect(line.wait(aRequest('a'))).toBe(0);
  await clock.advance(1_500);
  expect(line.wait(aRequest('a'))).toBe(1_500);
});
