import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import type { AgentRunStatus } from '../../crds/agent-run.ts';
import { APPROVALS_MAX, type Approval, approvalAnnotation } from '../../crds/approval.ts';
import { approvalsView, msToAnswer, type OpenQuestion, Questions } from './approvals.ts';

const note = { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' };
const { signal } = new AbortController();
const publish = (place = '3.0', args: object = { page: 'a' }) => ({
  tool: 'docs_publish',
  arguments: { ...args },
  place,
});

function asking(known: readonly Approval[] = [], runUid = 'uid-1') {
  let changes = 0;
  const questions = new Questions({
    ...{ runUid, known },
    redact: (text) => text.replaceAll('sk-secret', '***'),
    onChange: () => {
      changes += 1;
    },
  });
  return { questions, changes: () => changes };
}

/** What the status holds of a question that was written into it. */
const written = (
  { allArguments: _long, ...question }: OpenQuestion,
  changes: Partial<Approval> = {},
): Approval => ({
  ...question,
  state: 'Waiting',
  requestTime: '2026-03-01T12:00:00Z',
  ...changes,
});

const firstOf = (questions: Questions): OpenQuestion => {
  const [question] = questions.open;
  if (question === undefined) throw new Error('nothing was asked');
  return question;
};

describe('a question of a loop', () => {
  it('waits, wakes the reconciler, and is answered', async () => {
    const { questions, changes } = asking();
    const permission = questions.ask(publish(), signal);
    expect(questions.open).toMatchObject([{ tool: 'docs_publish', arguments: '{"page":"a"}' }]);
    expect(changes()).toBe(1);
    questions.settle(written(firstOf(questions), { state: 'Approved', by: 'ada' }));
    expect(await permission).toEqual({ kind: 'Approved' });
    expect(questions.open).toEqual([]);
  });

  it.each<[Approval['state'], RegExp]>([
    ['Denied', /ada denied this call of docs_publish\. .*say in your answer/],
    ['Expired', /nobody approved this call of docs_publish in time/],
  ])('that ends as %s tells the model what to do', async (state, message) => {
    const { questions } = asking();
    const permission = questions.ask(publish(), signal);
    questions.settle(written(firstOf(questions), { state, by: 'ada' }));
    expect(await permission).toEqual({ kind: 'Refused', message: expect.stringMatching(message) });
  });

  it('ends with its run', async () => {
    const { questions } = asking();
    const stop = new AbortController();
    const permission = questions.ask(publish(), stop.signal);
    stop.abort(new Error('cancelled'));
    await expect(permission).rejects.toThrow('cancelled');
    expect(questions.open).toEqual([]);
    await expect(questions.ask(publish(), stop.signal)).rejects.toThrow('cancelled');
  });

  it('has an id of its own for each run, place, tool and argument, so that one answer is for one call', async () => {
    const ids = await Promise.all(
      [
        [asking(), publish()],
        [asking([], 'uid-2'), publish()],
        [asking(), publish('3.1')],
        [asking(), publish('3.0', { page: 'b' })],
        [asking(), { ...publish(), tool: 'docs_drop' }],
      ].map(async (pair) => {
        const [{ questions }, question] = pair as [ReturnType<typeof asking>, ReturnType<typeof publish>]; // as built above
        void questions.ask(question, signal);
        return firstOf(questions).id;
      }),
    );
    expect(new Set(ids).size).toBe(5);
    const again = asking();
    void again.questions.ask(publish(), signal);
    expect(firstOf(again.questions).id).toBe(ids[0]);
  });

  it('shows its arguments without secrets, in ASCII, and not at any length', () => {
    const { questions } = asking();
    void questions.ask(
      publish('1.0', { key: 'sk-secret', turned: '\u202eabc', long: 'x'.repeat(5_000) }),
      signal,
    );
    const { arguments: args, allArguments } = firstOf(questions);
    expect(allArguments).toContain(`"${'x'.repeat(5_000)}"`);
    expect(args).toMatch(/^\{"key":"\*\*\*","turned":"\\u202eabc","long":"x+\.\.\.$/);
    expect(args).toHaveLength(500);
  });

  it('that an earlier holder has got an answer to is not asked again', async () => {
    const before = asking();
    void before.questions.ask(publish(), signal);
    const question = firstOf(before.questions);
    const approved = asking([written(question, { state: 'Approved', by: 'ada' })]);
    expect(await approved.questions.ask(publish(), signal)).toEqual({ kind: 'Approved' });
    expect(approved.changes()).toBe(0);
    const waiting = asking([written(question)]);
    void waiting.questions.ask(publish(), signal);
    expect(waiting.questions.open).toEqual([question]);
  });

  it('is refused when an answer of the same id was for another call', async () => {
    const before = asking();
    void before.questions.ask(publish(), signal);
    const other = written(firstOf(before.questions), { state: 'Approved', digest: 'f'.repeat(64) });
    expect(await asking([other]).questions.ask(publish(), signal)).toMatchObject({ kind: 'Refused' });
  });

  it('is refused when its arguments are longer than anybody reads: what is approved was seen', async () => {
    const { questions, changes } = asking();
    expect(await questions.ask(publish('1.0', { page: 'x'.repeat(10_000) }), signal)).toMatchObject({
      kind: 'Refused',
      message: expect.stringContaining('Make them shorter'),
    });
    expect(changes()).toBe(0);
  });

  it('is refused beyond what people can be asked to read', async () => {
    const { questions } = asking();
    for (let index = 0; index < APPROVALS_MAX; index += 1) void questions.ask(publish(`1.${index}`), signal);
    expect(questions.open).toHaveLength(APPROVALS_MAX);
    expect(await questions.ask(publish('2.0'), signal)).toMatchObject({
      kind: 'Refused',
      message: expect.stringContaining('asked for 10 already'),
    });
  });
});

describe('what a running loop needs', () => {
  const { questions } = asking();
  void questions.ask(publish(), signal);
  const question = firstOf(questions);
  const run = (status: AgentRunStatus, answer?: string) =>
    aRun(
      { phase: 'Running', note, ...status },
      {
        metadata: { annotations: answer === undefined ? {} : { [approvalAnnotation(question.id)]: answer } },
      },
    );

  it.each<[string, AgentRunStatus, string | undefined, boolean, object]>([
    ['a question that is written nowhere', {}, undefined, true, { need: 'Ask', waiting: false }],
    [
      'one that nobody was told of',
      { approvals: [written(question)] },
      undefined,
      true,
      { need: 'Tell', waiting: true },
    ],
    [
      'one that nobody can be told of',
      { approvals: [written(question)] },
      undefined,
      false,
      { need: undefined, waiting: true },
    ],
    [
      'one that people know of',
      { approvals: [written(question, { told: true })] },
      undefined,
      true,
      { need: undefined, waiting: true },
    ],
    [
      'one with an answer',
      { approvals: [written(question, { told: true })] },
      'approve by ada',
      true,
      { need: 'Settle', waiting: true },
    ],
    [
      'one whose answer is written and was not handed over',
      { approvals: [written(question, { told: true, state: 'Denied' })] },
      undefined,
      true,
      { need: 'Settle', waiting: false },
    ],
    [
      'an answer that is no word of ours',
      { approvals: [written(question, { told: true })] },
      'maybe',
      true,
      { need: undefined, waiting: true },
    ],
    ['an answer before the question is written', {}, 'approve', true, { need: 'Ask', waiting: false }],
  ])('%s', (_what, status, answer, publishes, view) => {
    expect(approvalsView(run(status, answer), [question], publishes)).toEqual(view);
  });

  it('a note that tells of a question which is over', () => {
    const over = run({ approvals: [written(question, { state: 'Approved' })] });
    expect(approvalsView(over, [], true)).toEqual({ need: 'Tell', waiting: false });
  });
});

it('a call is refused while there is time left for an answer with what is known', () => {
  const run = aRun({ startTime: '2026-03-01T12:00:00Z' });
  const now = new Date('2026-03-01T12:00:00Z');
  expect(msToAnswer(run, 25 * 60_000, now)).toBe(23 * 60_000);
  expect(msToAnswer(run, 60_000, now)).toBe(48_000);
  expect(msToAnswer(run, 60_000, new Date('2026-03-01T12:00:48Z'))).toBe(0);
});
