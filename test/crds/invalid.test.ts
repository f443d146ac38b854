import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dryRunCreate } from './api.ts';
import { cleanUp, type Namespaces, prepare, tryKubectl } from './kubectl.ts';
import { type Change, changed, SAMPLES, type Sample, sample, set, unset } from './objects.ts';

let namespaces: Namespaces;
beforeAll(async () => {
  namespaces = await prepare();
});
afterAll(() => cleanUp(namespaces));

/** What is wrong, the change to the sample that makes it so, and what the refusal has to say. */
type Row = readonly [wrong: string, changes: readonly Change[], refusal: RegExp];

const secret = { name: 'some-secret', key: 'token' };
const poolRef = { name: 'analysis' };
const long = (length: number): string => 'x'.repeat(length);

const agentRun: readonly Row[] = [
  ['no spec', [unset('spec')], /spec: Required value/],
  ['no workflow', [unset('spec.workflowRef')], /spec\.workflowRef: Required value/],
  [
    'a workflow name with a space',
    [set('spec.workflowRef.name', 'my workflow')],
    /spec\.workflowRef\.name: Invalid/,
  ],
  [
    'a project without a group',
    [set('spec.mergeRequest.project', 'app')],
    /spec\.mergeRequest\.project: Invalid/,
  ],
  [
    'the address of a project',
    [set('spec.mergeRequest.project', 'https://gitlab.example.org/group/app')],
    /spec\.mergeRequest\.project: Invalid/,
  ],
  ['no merge request number', [unset('spec.mergeRequest.iid')], /spec\.mergeRequest\.iid: Required value/],
  [
    'merge request 0',
    [set('spec.mergeRequest.iid', 0)],
    /spec\.mergeRequest\.iid: Invalid.*greater than or equal to 1/,
  ],
  [
    'a number in quotes',
    [set('spec.mergeRequest.iid', '42')],
    /spec\.mergeRequest\.iid: Invalid.*must be of type integer/,
  ],
  ['an abbreviated commit', [set('spec.mergeRequest.sha', '1a2b3c4')], /spec\.mergeRequest\.sha: Invalid/],
  [
    'an unknown trigger',
    [set('spec.trigger', { kind: 'Cron' })],
    /spec\.trigger\.kind: Unsupported value.*"Manual"/,
  ],
  [
    'a reply without a discussion',
    [set('spec.trigger', { kind: 'Reply' })],
    /spec\.trigger\.discussionId: Required value: .*name the discussion to answer in/,
  ],
  [
    'a command without its note',
    [set('spec.trigger', { kind: 'Command' })],
    /spec\.trigger\.noteId: Required value: .*name the note/,
  ],
  [
    'a pipeline run without an event',
    [set('spec.trigger', { kind: 'Pipeline' })],
    /spec\.trigger\.eventId: Required value: .*give the id/,
  ],
  [
    'a message of 1.2 MB (BR-18 b)',
    [set('spec.message', 'x'.repeat(1_200_000))],
    /spec\.message: Too long: may not be more than 16384/,
  ],
  ['days in a duration', [set('spec.limits', { timeout: '1d' })], /spec\.limits\.timeout: Invalid/],
  [
    'money as a number',
    [set('spec.limits', { budgetUSD: 2.5 })],
    /spec\.limits\.budgetUSD: Invalid.*must be of type string/,
  ],
  ['a negative budget', [set('spec.limits', { budgetUSD: '-1' })], /spec\.limits\.budgetUSD: Invalid/],
  ['no iterations', [set('spec.limits', { maxIterations: 0 })], /spec\.limits\.maxIterations: Invalid/],
  [
    'a context of nothing',
    [set('spec.limits', { contextTokens: 10 })],
    /spec\.limits\.contextTokens: Invalid/,
  ],
  [
    'an empty sandbox choice',
    [set('spec.sandbox', {})],
    /spec\.sandbox: Invalid.*exactly one of poolRef and none/,
  ],
  [
    'a pool and none',
    [set('spec.sandbox', { poolRef, none: true })],
    /spec\.sandbox: Invalid.*set poolRef to use a pool, or none: true/,
  ],
  ['none: false', [set('spec.sandbox', { none: false })], /spec\.sandbox\.none: Unsupported value/],
  [
    'an unknown way to publish',
    [set('spec.publish', { kind: 'Email' })],
    /spec\.publish\.kind: Unsupported value/,
  ],
  ['a message too long', [set('spec.message', long(16_385))], /spec\.message: Too long.*16384/],
  [
    'a negative time to live',
    [set('spec.ttlSecondsAfterFinished', { success: -1 })],
    /spec\.ttlSecondsAfterFinished\.success: Invalid/,
  ],
  ['a misspelt field', [set('spec.workflow', 'x')], /unknown field "spec\.workflow"/],
  ['an inline session', [set('spec.sessionRef', 'abc')], /spec\.sessionRef: Invalid.*must be of type object/],
];

const agentSession: readonly Row[] = [
  ['no merge request', [unset('spec.mergeRequest')], /spec\.mergeRequest: Required value/],
  ['no project', [unset('spec.mergeRequest.project')], /spec\.mergeRequest\.project: Required value/],
  [
    'a name too long for a label',
    [set('metadata.name', long(64))],
    /metadata: Invalid.*metadata\.name must be at most 63/,
  ],
  ['a discussion id too long', [set('spec.discussionId', long(65))], /spec\.discussionId: Too long/],
];

const openAi = { name: 'm', provider: 'OpenAICompatible' };
const vertex = { name: 'm', provider: 'AnthropicVertex' };
const konflux = { clusterURL: 'https://api.example.org:6443', kubeconfigSecretRef: secret };
const mcp = { name: 'docs', url: 'https://mcp.example.org', allowedTools: ['search'] };
const delivery = {
  bumps: { labels: ['renovate'] },
  edits: { allowPaths: ['apps/**'] },
};

const agentWorkflow: readonly Row[] = [
  [
    'no prompt',
    [set('spec.prompt', {})],
    /spec\.prompt: Invalid.*exactly one of builtin, text and configMapKeyRef/,
  ],
  [
    'two prompts',
    [set('spec.prompt.text', 'Do it')],
    /spec\.prompt: Invalid.*exactly one of builtin, text and configMapKeyRef/,
  ],
  [
    'an unknown event',
    [set('spec.triggers.0.event', 'Push')],
    /spec\.triggers\[0\]\.event: Unsupported value/,
  ],
  [
    'a pipeline status for merge request events',
    [set('spec.triggers.0.event', 'MergeRequest')],
    /spec\.triggers\[0\]\.rules: Invalid.*remove status/,
  ],
  [
    'one event twice',
    [set('spec.triggers', [{ event: 'Pipeline' }, { event: 'Pipeline' }])],
    /spec\.triggers\[1\]: Duplicate value/,
  ],
  [
    'a rule without an action',
    [set('spec.triggers.0.rules', [{}])],
    /spec\.triggers\[0\]\.rules\[0\]\.action: Required value/,
  ],
  ['no model', [unset('spec.model')], /spec\.model: Required value/],
  ['an unknown provider', [set('spec.model.provider', 'OpenAI')], /spec\.model\.provider: Unsupported value/],
  [
    'an endpoint that is not named',
    [set('spec.model', openAi)],
    /spec\.model\.baseURL: Required value: .*required when provider is OpenAICompatible/,
  ],
  [
    'a gateway for Gemini with a path',
    [set('spec.model.baseURL', 'https://m.example.org/v1')],
    /spec\.model\.baseURL: Invalid.*must be scheme and host only/,
  ],
  [
    'a password in an address',
    [set('spec.model', { ...openAi, baseURL: 'https://user:pw@m.example.org/v1' })],
    /spec\.model\.baseURL: Invalid/,
  ],
  [
    'Gemini without a key',
    [unset('spec.model.apiKeySecretRef')],
    /spec\.model\.apiKeySecretRef: Required value: .*name the Secret/,
  ],
  [
    'an API key for Vertex',
    [set('spec.model', { ...vertex, apiKeySecretRef: secret })],
    /spec\.model\.apiKeySecretRef: Invalid.*use model\.vertex\.credentialsSecretRef/,
  ],
  [
    'Vertex settings for Gemini',
    [set('spec.model.vertex', {})],
    /spec\.model\.vertex: Invalid.*must be left out/,
  ],
  [
    'a key that is inlined',
    [set('spec.model.apiKeySecretRef', 'sk-123')],
    /spec\.model\.apiKeySecretRef: Invalid.*must be of type object/,
  ],
  ['no sandbox', [unset('spec.sandbox')], /spec\.sandbox: Required value/],
  ['no projects', [set('spec.projects', [])], /spec\.projects: Invalid.*at least 1 items/],
  [
    'one project twice',
    [
      set('spec.projects', [
        { path: 'a/b', actionTokenSecretRef: secret },
        { path: 'a/b', actionTokenSecretRef: secret },
      ]),
    ],
    /spec\.projects\[1\]: Duplicate value/,
  ],
  [
    'notes without a token to post them',
    [unset('spec.projects.0.actionTokenSecretRef')],
    /spec\.projects: Required value: .*actionTokenSecretRef.*publish\.kind to None/,
  ],
  [
    'an unknown policy for a second run',
    [set('spec.concurrency', 'Parallel')],
    /spec\.concurrency: Unsupported value.*"Supersede"/,
  ],
  [
    'days in a time to live',
    [set('spec.ttlAfterFinished.success', '15d')],
    /spec\.ttlAfterFinished\.success: Invalid/,
  ],
  [
    'a Konflux address without namespace',
    [set('spec.dataSources.konflux', konflux)],
    /spec\.dataSources\.konflux\.clusterURL: Invalid/,
  ],
  [
    'a server by address and by command',
    [set('spec.dataSources.mcp', [{ ...mcp, command: ['x'] }])],
    /spec\.dataSources\.mcp\[0\]: Invalid.*exactly one of url and command/,
  ],
  [
    'a server without tools',
    [set('spec.dataSources.mcp', [{ ...mcp, allowedTools: [] }])],
    /spec\.dataSources\.mcp\[0\]\.allowedTools: Invalid.*at least 1 items/,
  ],
  [
    'approval for a tool that is not allowed',
    [set('spec.dataSources.mcp', [{ ...mcp, requireApproval: ['publish'] }])],
    /spec\.dataSources\.mcp\[0\]\.requireApproval: Invalid.*allowedTools does not/,
  ],
  [
    'one server twice',
    [set('spec.dataSources.mcp', [mcp, mcp])],
    /spec\.dataSources\.mcp\[1\]: Duplicate value/,
  ],
  [
    '** in the middle of a pattern',
    [set('spec.delivery', { ...delivery, edits: { allowPaths: ['apps/**/values.yaml'] } })],
    /spec\.delivery\.edits\.allowPaths\[0\]: Invalid/,
  ],
  [
    'edits without an allowed path',
    [set('spec.delivery', { ...delivery, edits: { allowPaths: [] } })],
    /spec\.delivery\.edits\.allowPaths: Invalid/,
  ],
  [
    'bumps that nothing tells apart',
    [set('spec.delivery', { ...delivery, bumps: {} })],
    /spec\.delivery\.bumps: Invalid.*at least one entry/,
  ],
  [
    'live reads without credentials',
    [set('spec.delivery', { ...delivery, liveReads: { enabled: true } })],
    /spec\.delivery\.liveReads\.kubeconfigSecretRef: Required value/,
  ],
  [
    'neither a prompt nor delivery',
    [unset('spec.prompt')],
    /spec\.prompt: Required value: .*unless the workflow repairs chart bumps/,
  ],
  [
    'delivery without a sandbox',
    [set('spec.delivery', delivery), set('spec.sandbox', { none: true })],
    /spec\.sandbox: Invalid.*rendered in a sandbox/,
  ],
  [
    'delivery that posts nothing',
    [set('spec.delivery', delivery), set('spec.publish.kind', 'None')],
    /spec\.delivery: Invalid.*publish\.kind Note/,
  ],
  [
    'a name too long for a label',
    [set('metadata.name', long(64))],
    /metadata: Invalid.*metadata\.name must be at most 63/,
  ],
];

const machine = { containerDisk: 'registry.example.org/vm:1', ssh: { privateKeySecretRef: secret } };

const sandboxPool: readonly Row[] = [
  ['pods that are not described', [unset('spec.pod')], /spec\.pod: Invalid.*required when backend is Pod/],
  [
    'pods and machines',
    [set('spec.virtualMachineInstance', machine)],
    /spec\.virtualMachineInstance: Invalid.*must be left out otherwise/,
  ],
  [
    'machines that are not described',
    [set('spec.backend', 'VirtualMachineInstance'), unset('spec.pod')],
    /spec\.virtualMachineInstance: Invalid.*required when backend/,
  ],
  ['an unknown backend', [set('spec.backend', 'Docker')], /spec\.backend: Unsupported value/],
  ['pods without an image', [unset('spec.pod.image')], /spec\.pod\.image: Required value/],
  [
    'fewer than no replicas',
    [set('spec.replicas', -1)],
    /spec\.replicas: Invalid.*greater than or equal to 0/,
  ],
  ['words for a timeout', [set('spec.claim.timeout', 'never')], /spec\.claim\.timeout: Invalid/],
  [
    'words for an amount',
    [set('spec.pod.resources.limits.memory', 'lots')],
    /spec\.pod\.resources\.limits\.memory: Invalid/,
  ],
  [
    'an unknown effect of a taint',
    [set('spec.pod.tolerations', [{ effect: 'Never' }])],
    /spec\.pod\.tolerations\[0\]\.effect: Unsupported value/,
  ],
  [
    'a machine without a key',
    [
      set('spec.backend', 'VirtualMachineInstance'),
      unset('spec.pod'),
      set('spec.virtualMachineInstance', { containerDisk: 'x', ssh: {} }),
    ],
    /spec\.virtualMachineInstance\.ssh\.privateKeySecretRef: Required value/,
  ],
  [
    'a name too long for a label',
    [set('metadata.name', long(64))],
    /metadata: Invalid.*metadata\.name must be at most 63/,
  ],
];

const tables: Readonly<Record<Sample, readonly Row[]>> = {
  agentrun: agentRun,
  agentsession: agentSession,
  agentworkflow: agentWorkflow,
  sandboxpool: sandboxPool,
};

describe.each(SAMPLES)('%s', (kind) => {
  it.each(tables[kind])('with %s is refused', async (_, changes, refusal) => {
    const object = changed(await sample(kind, namespaces), ...changes);
    const { status, message } = await dryRunCreate(object, `${kind}s`);
    expect(message).toMatch(refusal);
    expect([400, 422]).toContain(status);
  });

  it('without such a change is taken', async () => {
    const object = await sample(kind, namespaces);
    expect(await dryRunCreate(object, `${kind}s`)).toEqual({ status: 201, message: '' });
  });
});

it('kubectl shows the same words', async () => {
  const object = changed(await sample('agentrun', namespaces), set('spec.trigger', { kind: 'Reply' }));
  const { ok, stderr } = await tryKubectl(['create', '-f', '-'], object);
  expect(stderr).toMatch(/spec\.trigger\.discussionId: Required value: .*name the discussion to answer in/);
  expect(ok).toBe(false);
});
