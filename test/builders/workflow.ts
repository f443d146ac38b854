import type { AgentWorkflow } from '../../src/crds/agent-workflow.ts';

/** A workflow in one line: what a test does not name is ordinary. */
export function aWorkflow(
  spec: Partial<AgentWorkflow['spec']> = {},
  metadata: Partial<AgentWorkflow['metadata']> = {},
): AgentWorkflow {
  return {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentWorkflow',
    metadata: {
      name: 'analyze-failures',
      namespace: 'agents',
      uid: 'w',
      generation: 1,
      resourceVersion: '1',
      ...metadata,
    },
    spec: {
      prompt: { text: 'Look.' },
      triggers: [],
      concurrency: 'Supersede',
      model: { name: 'test-script', provider: 'OpenAICompatible', baseURL: 'http://model.test/v1' },
      limits: { maxIterations: 5, contextTokens: 1000, timeout: '10m', maxRunsPerMergeRequest: 5 },
      sandbox: { none: true },
      publish: { kind: 'Note', internal: false, progress: false },
      dataSources: {},
      projects: [{ path: 'group/app', actionTokenSecretRef: { name: 'action', key: 'token' } }],
      ttlAfterFinished: { success: '1h', failure: '2h' },
      suspend: false,
      ...spec,
    },
  };
}
