import { expect, test } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import type { MergeRequestFacts, MergeRequests, NoteOutcome } from '../../../notes/port.ts';
import type { RunDeps } from '../deps.ts';
import { admit, beginAdmission } from './admit.ts';

const workflow = aWorkflow({ publish: { kind: 'None', internal: true, progress: false } });
const run = aRun({}, { spec: { trigger: { kind: 'Pipeline', userId: 7, user: 'ann' } } });
const missing = { kind: 'Invalid', reason: 'NotFound', message: 'Secret model-key is not there' } as const;

/** A run that a pipeline started, whose model key is missing. `asked` tells in which order was asked. */
function step(get: () => Promise<NoteOutcome<MergeRequestFacts>>, model: RunDeps['model']) {
  const asked: string[] = [];
  const mergeRequests: Pick<MergeRequests, 'get' | 'accessLevel'> = {
    get() {
      asked.push('merge request');
      return get();
    },
    async accessLevel() {
      asked.push('access');
      return { kind: 'Ok', value: 0 };
    },
  };
  const world = aStep(
    run,
    {
      mergeRequests: mergeRequests as MergeRequests, // the two that an admission asks
      sourceAccess: async () => ({ kind: 'Ok', value: undefined }),
      prompt: async () => ({ kind: 'Ok', value: 'Look.' }),
      model,
    },
    workflow,
  );
  return { ...world, asked };
}

test('GitLab is asked before the references have been read', async () => {
  const references = Promise.withResolvers<void>();
  const { context, asked } = step(
    () => new Promise(() => undefined),
    () => references.promise.then(() => missing),
  );
  const admission = admit(context);
  await expect.poll(() => asked).toEqual(['merge request', 'access']);
  references.resolve();
  expect((await admission).status?.outcome).toMatchObject({ reason: 'InvalidSpec' });
});

test('what is missing is said although GitLab is away', async () => {
  const { context } = step(
    () => Promise.reject(new Error('GitLab is away')),
    async () => missing,
  );
  const { status } = await admit(context);
  expect(status?.outcome).toMatchObject({
    reason: 'InvalidSpec',
    message: expect.stringContaining('model-key'),
  });
});

test('what was asked while the hold was written is not asked again', async () => {
  const { context, asked } = step(
    async () => ({ kind: 'Refused', status: 404, message: 'Not found' }),
    async () => missing,
  );
  beginAdmission(context);
  await admit(context);
  expect(asked).toEqual(['merge request', 'access']);
  await admit(context);
  expect(asked).toHaveLength(4);
});

test('an answer from before a hold that took long is not used', async () => {
  const { context, clock, asked } = step(
    async () => ({ kind: 'Refused', status: 404, message: 'Not found' }),
    async () => missing,
  );
  beginAdmission(context);
  await clock.advance(2_000);
  await admit(context);
  expect(asked).toHaveLength(4);
});

test.each([{ suspend: true }, { projects: [] }])('nothing is asked early for %j', (spec) => {
  const { context, asked } = step(
    async () => ({ kind: 'Refused', status: 404, message: 'Not found' }),
    async () => missing,
  );
  beginAdmission({ ...context, workflow: aWorkflow(spec) });
  expect(asked).toEqual([]);
});
