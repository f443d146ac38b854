import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type RunCause, runName } from './run-name.ts';

const cause: RunCause = {
  workflow: 'analyze-failures',
  projectId: 1,
  iid: 7,
  sha: 'a'.repeat(40),
  trigger: 'Pipeline',
  eventId: '31',
};

it('never changes for a cause: messages that wait in a queue during an upgrade rely on it', () => {
  expect(runName(cause)).toBe('analyze-failures-5ccbd186ae3b8eea5494');
});

it.each<[string, Partial<RunCause>]>([
  ['project', { projectId: 2 }],
  ['merge request', { iid: 8 }],
  ['workflow', { workflow: 'analyze-failures-2' }],
  ['commit', { sha: 'b'.repeat(40) }],
  ['kind of trigger', { trigger: 'MergeRequest' }],
  ['event', { eventId: '32' }],
  ['project and iid that read the same side by side', { projectId: 17, iid: 7 }],
])('differs with another %s', (_what, other) => {
  expect(runName({ ...cause, ...other })).not.toBe(runName(cause));
});

it('is a DNS label whatever the workflow is called', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 260 }), (workflow) => {
      expect(runName({ ...cause, workflow })).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    }),
  );
});

it('tells workflows apart whose first characters are the same', () => {
  const long = 'w'.repeat(60);
  expect(runName({ ...cause, workflow: `${long}a` })).not.toBe(runName({ ...cause, workflow: `${long}b` }));
});
