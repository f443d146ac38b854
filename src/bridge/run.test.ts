import { expect, it } from 'vitest';
import { AgentRunSpec } from '../crds/agent-run.ts';
import type { CreateRun } from './decide/decision.ts';
import { buildRun } from './run.ts';

const decision: CreateRun = {
  kind: 'CreateRun',
  workflow: { metadata: { name: 'analyze', namespace: 'agents' }, spec: {} },
  cause: {
    workflow: 'analyze',
    projectId: 1,
    iid: 7,
    sha: 'a'.repeat(40),
    trigger: 'Pipeline',
    eventId: '31',
  },
  project: 'group/app',
  user: { id: 9, name: 'alice' },
  message: 'pipeline 31 failed',
};

it('a run carries its cause, its labels and whom to check', () => {
  expect(buildRun(decision)).toEqual({
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentRun',
    metadata: {
      name: expect.stringMatching(/^analyze-[0-9a-f]{20}$/),
      namespace: 'agents',
      labels: {
        'app.kubernetes.io/managed-by': 'hummingbird-operator',
        'hummingbird.dev/workflow': 'analyze',
        'hummingbird.dev/project-id': '1',
      },
    },
    spec: {
      workflowRef: { name: 'analyze' },
      mergeRequest: { project: 'group/app', iid: 7, sha: 'a'.repeat(40) },
      trigger: { kind: 'Pipeline', eventId: '31', user: 'alice', userId: 9 },
      publish: { kind: 'Note' },
      cancel: false,
    },
  });
});

it('its spec is one that the schema takes, with and without a user', () => {
  expect(AgentRunSpec.parse(buildRun(decision).spec)).toEqual(buildRun(decision).spec);
  expect(buildRun({ ...decision, user: undefined }).spec.trigger).toEqual({
    kind: 'Pipeline',
    eventId: '31',
  });
});

it('a run by command carries the note and what was asked, and leaves the place of its answer open', () => {
  const { spec, metadata } = buildRun({
    ...decision,
    cause: { ...decision.cause, trigger: 'Command', eventId: '501', sha: '' },
    noteId: 501,
    request: 'Look at the cache',
  });
  expect(AgentRunSpec.parse(spec)).toMatchObject({
    mergeRequest: { project: 'group/app', iid: 7 },
    trigger: { kind: 'Command', eventId: '501', noteId: 501, user: 'alice', userId: 9 },
    message: 'Look at the cache',
  });
  expect(spec.mergeRequest).not.toHaveProperty('sha');
  expect(spec.trigger).not.toHaveProperty('discussionId');
  expect(spec).not.toHaveProperty('sessionRef');
  expect(metadata.labels).not.toHaveProperty('hummingbird.dev/session');
});

it('a run by reply goes on with its session, in its discussion', () => {
  const { spec, metadata } = buildRun({
    ...decision,
    cause: { ...decision.cause, trigger: 'Reply', eventId: '501' },
    noteId: 501,
    request: 'Which cache?',
    session: { id: 's-1', discussionId: 'd'.repeat(40) },
  });
  expect(AgentRunSpec.parse(spec)).toMatchObject({
    sessionRef: { name: 's-1' },
    trigger: { kind: 'Reply', discussionId: 'd'.repeat(40), noteId: 501 },
    message: 'Which cache?',
  });
  expect(metadata.labels).toMatchObject({ 'hummingbird.dev/session': 's-1' });
});
