import type { AgentRun, AgentRunSpec, AgentRunStatus } from '../../src/crds/agent-run.ts';
import type { Condition, ObjectMeta } from '../../src/crds/meta.ts';

/** A run in one line: what a test does not name is ordinary. */
export function aRun(
  status: AgentRunStatus = {},
  options: { readonly metadata?: Partial<ObjectMeta>; readonly spec?: Partial<AgentRunSpec> } = {},
): AgentRun {
  return {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentRun',
    metadata: {
      name: 'run-1',
      namespace: 'agents',
      uid: '11111111-2222-4333-8444-555555555555',
      resourceVersion: '7',
      generation: 1,
      finalizers: ['hummingbird.dev/sandbox'],
      ...options.metadata,
    },
    spec: {
      workflowRef: { name: 'analyze-failures' },
      mergeRequest: { project: 'group/app', iid: 42 },
      trigger: { kind: 'Manual' },
      publish: { kind: 'Note' },
      cancel: false,
      ...options.spec,
    },
    status,
  };
}

export const aCondition = (type: string, status: Condition['status'], reason = 'Because'): Condition => ({
  type,
  status,
  reason,
  message: `${type} is ${status}`,
  lastTransitionTime: '2026-03-01T12:00:00.000Z',
});
