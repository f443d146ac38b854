import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { aWorkflow } from '../../test/builders/workflow.ts';
import { AgentWorkflowSpec } from '../crds/agent-workflow.ts';
import { createHttpClient } from '../http/client.ts';
import { createReferences } from '../settings/references.ts';
import { toolsOf } from '../sources/factory.ts';
import { declaredSources } from './sources.ts';

const SecretSample = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }),
  stringData: z.record(z.string(), z.string()),
});
const http = createHttpClient();
afterAll(() => http.close());

const TOKEN = 'sha256~canary-konflux-1';
const kubeconfig = (user: object) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: 'https://api.example.org:6443' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'team' } }],
    users: [{ name: 'u', user }],
  });
const SECRETS: Readonly<Record<string, readonly [string, string]>> = {
  read: ['tool', 'glpat-read'],
  write: ['action', 'glpat-write'],
  konflux: ['tool', kubeconfig({ token: TOKEN })],
  program: ['tool', kubeconfig({ exec: { command: 'oc' } })],
};

const sampleOf = (
  name: string,
): readonly { kind: string; metadata: { name: string }; [key: string]: unknown }[] =>
  parseAllDocuments(readFileSync(new URL(`../../config/samples/${name}.yaml`, import.meta.url), 'utf8')).map(
    (document) => document.toJS(),
  );

const key = (name: string) => ({ name, key: 'value' });
const gitlab = (name = 'read') => ({ allowedProjects: ['group/lib'], tokenSecretRef: key(name) });
const konflux = (name = 'konflux') => ({
  clusterURL: 'https://api.example.org:6443/ns/team',
  kubeconfigSecretRef: key(name),
});

async function declared(dataSources: AgentWorkflowSpec['dataSources']) {
  const told: string[] = [];
  const onSecret = (value: string): void => void told.push(value);
  const references = createReferences({
    readSecret: async (_namespace, name) => {
      const [tier = '', value = ''] = SECRETS[name] ?? [];
      return {
        labels: { 'hummingbird.dev/token-tier': tier },
        data: { value: Buffer.from(value).toString('base64') },
      };
    },
    readConfigMapKey: async () => undefined,
    readBuiltinPrompt: async () => '',
    onSecret,
  });
  const found = await declaredSources(
    { references, http, onSecret },
    aWorkflow({ dataSources }),
    'group/app',
  );
  return { found, told };
}

async function toolNames(dataSources: AgentWorkflowSpec['dataSources']): Promise<readonly string[]> {
  const { found } = await declared(dataSources);
  if (found.kind === 'Invalid') throw new Error(found.message);
  const scope = { project: 'group/app', iid: 1, sha: 'a'.repeat(40) };
  return toolsOf(found.value, { http, gitlabUrl: 'https://gitlab.example.org' }, scope).map(
    ({ definition }) => definition.name,
  );
}

describe('the data sources of a workflow', () => {
  test.each<[string, AgentWorkflowSpec['dataSources'], readonly string[]]>([
    ['none', {}, []],
    ['GitLab', { gitlab: gitlab() }, ['gitlab']],
    ['Konflux', { konflux: konflux() }, ['konflux']],
    ['Testing Farm', { testingFarm: {} }, ['tf']],
    ['all three', { gitlab: gitlab(), konflux: konflux(), testingFarm: {} }, ['gitlab', 'konflux', 'tf']],
  ])('%s: what is not declared has no tools', async (_what, dataSources, kinds) => {
    const names = await toolNames(dataSources);
    expect([...new Set(names.map((name) => name.split('_')[0]))]).toEqual(kinds);
  });

  test('are where the workflow says', async () => {
    const { found } = await declared({
      testingFarm: { artifactsURL: 'https://a.example.org', apiURL: 'https://b.example.org/v0.1' },
    });
    expect(found).toEqual({
      kind: 'Ok',
      value: { testingFarm: { artifactsUrl: 'https://a.example.org', apiUrl: 'https://b.example.org/v0.1' } },
    });
  });

  test('are those of the sample for Konflux, with the Secrets of the example', async () => {
    const [workflow] = sampleOf('agentworkflow-konflux');
    const { dataSources } = AgentWorkflowSpec.parse(workflow?.['spec']);
    const secrets = sampleOf('secrets.example');
    const references = createReferences({
      readSecret: async (_namespace, name) => {
        const secret = SecretSample.parse(secrets.find(({ metadata }) => metadata.name === name));
        const encoded = Object.entries(secret.stringData).map(([at, text]) => [
          at,
          Buffer.from(text).toString('base64'),
        ]);
        return { labels: secret.metadata.labels, data: Object.fromEntries(encoded) };
      },
      readConfigMapKey: async () => undefined,
      readBuiltinPrompt: async () => '',
      onSecret: () => undefined,
    });
    const found = await declaredSources(
      { references, http, onSecret: () => undefined },
      aWorkflow({ dataSources: JSON.parse(JSON.stringify(dataSources)) }),
      'group/app',
    );
    expect(found).toMatchObject({ kind: 'Ok', value: { gitlab: {}, konflux: {}, testingFarm: {} } });
  });

  test('tell each secret that a kubeconfig holds, as well as the whole', async () => {
    const { told } = await declared({ konflux: konflux() });
    expect(told).toContain(TOKEN);
    expect(told).toHaveLength(2);
  });

  test('refuse a kubeconfig that asks a program, and say where', async () => {
    expect((await declared({ konflux: konflux('program') })).found).toMatchObject({
      kind: 'Invalid',
      reason: 'InvalidKubeconfig',
      message: expect.stringMatching(/^spec\.dataSources\.konflux: kubeconfig: .*never run/),
    });
  });

  test('say all that cannot be had at once, and tell no secret', async () => {
    const { found, told } = await declared({ gitlab: gitlab('write'), konflux: konflux('write') });
    expect(found).toMatchObject({
      kind: 'Invalid',
      reason: 'WrongTier',
      message: expect.stringMatching(
        /spec\.dataSources\.gitlab\.tokenSecretRef: .*; spec\.dataSources\.konflux\.kubeconfigSecretRef: /,
      ),
    });
    expect(told).toEqual([]);
  });
});
