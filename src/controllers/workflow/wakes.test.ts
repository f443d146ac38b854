import { expect, test } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import { wokenByRun } from './wakes.ts';

const key = 'agents/run-1';
const workflow = 'agents/analyze-failures';
const running = aRun({ phase: 'Running' });
const ended = aRun({ phase: 'Succeeded' });
const another = aRun({}, { metadata: { uid: 'another' }, spec: { workflowRef: { name: 'code-review' } } });

test.each(['Added', 'Deleted', 'Resync'] as const)('%s: the workflow counts its runs anew', (type) => {
  expect(wokenByRun({ type, key, object: running })).toEqual([workflow]);
});

test('a run that has ended wakes its workflow, once', () => {
  expect(wokenByRun({ type: 'Modified', key, object: ended, previous: running })).toEqual([workflow]);
  expect(wokenByRun({ type: 'Modified', key, object: ended, previous: ended })).toEqual([]);
});

test('the steps of a run under way wake nobody', () => {
  const pending = aRun({ phase: 'Pending' });
  expect(wokenByRun({ type: 'Modified', key, object: pending, previous: aRun() })).toEqual([]);
  expect(wokenByRun({ type: 'Modified', key, object: running, previous: pending })).toEqual([]);
});

test('a run that took the name of another one wakes the workflows of both', () => {
  const woken = wokenByRun({ type: 'Modified', key, object: another, previous: running });
  expect(woken).toEqual([workflow, 'agents/code-review']);
});
