import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { aRun } from '../../test/builders/run.ts';
import { aWorkflow } from '../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { ManualClock } from '../kube/clock.ts';
import { KubeError } from '../kube/errors.ts';
import { silentLogger } from '../kube/log.ts';
import type { KubeClient } from '../kube/port.ts';
import type { NoteOutcome, Threads } from '../notes/port.ts';
import { type ActDependencies, act } from './act.ts';
import type { Answer, Decision, ResolveThreads } from './decide/decision.ts';
import { skip } from './decide/decision.ts';
import { bridgeMetrics } from './metrics.ts';
import { GitLabAwayError } from './observe.ts';

const message = { id: 'm-1', receipt: 'r', body: '', receiveCount: 1, attributes: {} };
const to = { project: 'group/app', iid: 7, discussionId: 'd', noteId: 501 };
const answer: Answer<AgentWorkflow> = { kind: 'Answer', to, what: 'Help', text: 'So.' };
const denied: Answer<AgentWorkflow> = {
  ...answer,
  what: 'Refusal',
  skip: { ...skip('AccessDenied', 'no Developer'), workflow: aWorkflow() },
};

/** What a decision does; the parts that a test does not give refuse to be used. */
function world(parts: {
  readonly kube?: Partial<KubeClient>;
  readonly answer?: Threads['answer'];
  readonly notes?: ActDependencies['gitlab']['notes'];
}) {
  const registry = new Registry();
  const events: string[] = [];
  const refuse = () => Promise.reject(new Error('not given'));
  const dependencies = {
    kube: { patch: refuse, create: refuse, ...parts.kube },
    events: {
      record: (_: unknown, type: string, reason: string) => void events.push(`${type} ${reason}`),
      flush: async () => undefined,
    },
    gitlab: { threads: { answer: parts.answer ?? refuse }, notes: parts.notes ?? refuse },
    metrics: bridgeMetrics(registry),
    logger: silentLogger,
    clock: new ManualClock(new Date('2026-03-01T12:00:00Z')),
    random: () => 0,
    exclusively: (_: string, __: AbortSignal, work: () => Promise<unknown>) => work(),
  } as unknown as ActDependencies; // what is missing is not called
  return {
    events,
    act: (decision: Decision<AgentWorkflow>, signal = new AbortController().signal) =>
      act(dependencies, decision, message, signal),
    async count(metric: string, label?: string) {
      const found = await registry.getSingleMetric(`hummingbird_bridge_${metric}_total`)?.get();
      const counted = found?.values.find(
        ({ labels }) => label === undefined || Object.values(labels).includes(label),
      );
      return counted?.value ?? 0;
    },
  };
}
const posted = async () => ({ kind: 'Ok', value: 'Posted' }) as const;
const away = Object.assign(new Error('503'), { retryable: true });

describe('an answer', () => {
  it('that GitLab refuses is counted, and the message is done', async () => {
    const { act, count } = world({
      answer: async () => ({ kind: 'Refused', status: 403, message: 'scope' }),
    });
    await act(answer);
    expect(await count('answers', 'refused')).toBe(1);
  });

  it('that refuses somebody is recorded with its reason, for the workflow that was meant', async () => {
    const { act, count, events } = world({ answer: posted });
    await act(denied);
    expect(await count('skips', 'AccessDenied')).toBe(1);
    expect(events).toEqual(['Normal AccessDenied']);
  });

  it('that GitLab is too busy for waits for it; other faults are those of the one message', async () => {
    await expect(world({ answer: () => Promise.reject(away) }).act(answer)).rejects.toBeInstanceOf(
      GitLabAwayError,
    );
    const fault = new Error('400');
    await expect(world({ answer: () => Promise.reject(fault) }).act(answer)).rejects.toBe(fault);
  });

  it('that ran out of time waits for GitLab too', async () => {
    const stopped = AbortSignal.abort(new Error('too long'));
    const { act } = world({ answer: () => Promise.reject(stopped.reason) });
    await expect(act(answer, stopped)).rejects.toBeInstanceOf(GitLabAwayError);
  });

  it('comes after what it tells of, and not without it', async () => {
    const told: string[] = [];
    const gone = new KubeError({ where: 'run-1', message: 'gone', reason: 'NotFound' });
    const refused = new KubeError({ where: 'run-1', message: 'no', reason: 'Forbidden' });
    const cancelling = (outcome: () => Promise<never> | Promise<unknown>) =>
      world({
        kube: {
          patch: (async () => outcome().then(() => told.push('patch'))) as unknown as KubeClient['patch'],
        },
        answer: async () => {
          told.push('answer');
          return { kind: 'Ok', value: 'Posted' };
        },
      }).act({ ...answer, what: 'Cancel', cancel: [aRun()] });
    await cancelling(async () => undefined);
    expect(told).toEqual(['patch', 'answer']);
    await cancelling(() => Promise.reject(gone));
    expect(told).toEqual(['patch', 'answer', 'answer']);
    await expect(cancelling(() => Promise.reject(refused))).rejects.toBe(refused);
    expect(told).toHaveLength(3);
  });

  it('to a question is put on the run that asked, and on no other of its name', async () => {
    const patches: unknown[] = [];
    const patch = (async (_kind: unknown, _ref: unknown, body: unknown) =>
      patches.push(body)) as unknown as KubeClient['patch'];
    const approval = { run: aRun(), id: '0123456789ab', text: 'approve by alice, note 501' };
    await world({ kube: { patch }, answer: posted }).act({ ...answer, what: 'Approval', approval });
    const annotations = { 'approval.hummingbird.dev/0123456789ab': 'approve by alice, note 501' };
    expect(patches).toEqual([
      { type: 'merge', body: { metadata: { uid: aRun().metadata.uid, annotations } } },
    ]);
  });
});

describe('threads that are to be resolved', () => {
  const decision: ResolveThreads<AgentWorkflow> = {
    kind: 'ResolveThreads',
    workflow: aWorkflow(),
    project: 'group/app',
    iid: 7,
    message: 'pipeline 31 succeeded',
  };
  const resolving = (outcome: () => Promise<NoteOutcome<number>>) =>
    world({
      notes: (async () => ({
        kind: 'Ok',
        value: { resolveThreads: outcome },
      })) as unknown as ActDependencies['gitlab']['notes'],
    });

  it('are counted', async () => {
    const { act, count, events } = resolving(async () => ({ kind: 'Ok', value: 2 }));
    await act(decision);
    expect(events).toEqual([]);
    expect(await count('threads_resolved')).toBe(2);
  });

  it.each<[string, ReturnType<typeof world>]>([
    ['no token', world({ notes: async () => ({ kind: 'Invalid', message: 'no such Secret' }) })],
    ['a token that may not', resolving(async () => ({ kind: 'Refused', status: 403, message: 'no' }))],
  ])('stay with %s, and the workflow says so; the message is done', async (_why, { act, events }) => {
    await act(decision);
    expect(events).toEqual(['Warning ThreadsNotResolved']);
  });

  it('wait for a GitLab that is away', async () => {
    await expect(resolving(() => Promise.reject(away)).act(decision)).rejects.toBeInstanceOf(GitLabAwayError);
  });
});
