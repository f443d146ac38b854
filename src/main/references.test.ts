import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { aWorkflow } from '../../test/builders/workflow.ts';
import { startTokens, type TokenServer } from '../../test/fakes/google/tokens.ts';
import { createGoogleCredentials, type GoogleCredentials } from '../agent/models/vertex/credentials.ts';
import type { AgentWorkflow, AgentWorkflowSpec } from '../crds/agent-workflow.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { createReferences } from '../settings/references.ts';
import { openModel } from './references.ts';

let tokens: TokenServer;
let http: HttpClient;
let google: GoogleCredentials;
const secrets = new Set<string>();

beforeAll(async () => {
  tokens = await startTokens();
  http = createHttpClient();
  const watch = { add: (value: string) => void secrets.add(value), forget: () => {} };
  google = createGoogleCredentials({ http, secrets: watch });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await http.close();
  await tokens.stop();
});

const base64 = (text: string) => Buffer.from(text).toString('base64');

async function open(model: AgentWorkflowSpec['model'], tier = 'model', keyFile = tokens.keyFile) {
  const references = createReferences({
    readSecret: async (_namespace, name) =>
      name === 'gcp'
        ? { labels: { 'hummingbird.dev/token-tier': tier }, data: { key: base64(keyFile) } }
        : undefined,
    readConfigMapKey: async () => undefined,
    readBuiltinPrompt: async () => '',
    onSecret: (value) => void secrets.add(value),
  });
  const workflow: AgentWorkflow = aWorkflow({ model });
  return openModel({ references, http, google }, workflow, undefined);
}

const credentialsSecretRef = { name: 'gcp', key: 'key' };

test('a Vertex model is opened with the key file of its Secret and the project in it', async () => {
  const vertex = { location: 'europe-west1', credentialsSecretRef };
  const claude = await open({ name: 'claude-opus-5', provider: 'AnthropicVertex', vertex });
  expect(claude).toMatchObject({ kind: 'Ok', value: { name: 'claude-opus-5', provider: 'anthropic' } });
  const gemini = await open({ name: 'gemini-3-pro', provider: 'GeminiVertex', vertex });
  expect(gemini).toMatchObject({ kind: 'Ok', value: { provider: 'gcp.gemini' } });
  expect([...secrets].some((value) => value.includes('PRIVATE KEY'))).toBe(true);
});

test('a Secret of another tier is refused', async () => {
  const vertex = { location: 'global', credentialsSecretRef };
  expect(await open({ name: 'claude-opus-5', provider: 'AnthropicVertex', vertex }, 'tool')).toMatchObject({
    kind: 'Invalid',
    reason: 'WrongTier',
    message: expect.stringMatching(/^spec\.model\.vertex\.credentialsSecretRef: /),
  });
});

test('a key file that cannot be used is refused before any run is started', async () => {
  const vertex = { location: 'global', credentialsSecretRef };
  const opened = await open({ name: 'claude-opus-5', provider: 'AnthropicVertex', vertex }, 'model', '{}');
  expect(opened).toMatchObject({
    kind: 'Invalid',
    reason: 'InvalidModel',
    message: expect.stringMatching(/^spec\.model: The Google Cloud credentials cannot be used: type: /),
  });
});

test("without a Secret the process's own account and project count", async () => {
  vi.stubEnv('GOOGLE_CLOUD_PROJECT', 'env-project');
  expect(await open({ name: 'claude-opus-5', provider: 'AnthropicVertex' })).toMatchObject({ kind: 'Ok' });
});
