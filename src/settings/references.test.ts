import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../test/builders/workflow.ts';
import { createReferences } from './references.ts';
import type { SecretObject } from './secrets.ts';

const secret = (tier: string, token: string): SecretObject => ({
  labels: { 'hummingbird.dev/token-tier': tier },
  data: { token: Buffer.from(token).toString('base64') },
});
const SECRETS: Readonly<Record<string, SecretObject>> = {
  'agents/action': secret('action', 'glpat-action'),
  'agents/read': secret('tool', 'glpat-read'),
  'agents/app-read': secret('tool', 'glpat-app-read'),
  'agents/model': secret('model', 'sk-model'),
};

function references() {
  const told: string[] = [];
  const made = createReferences({
    readSecret: async (namespace, name) => SECRETS[`${namespace}/${name}`],
    readConfigMapKey: async (_, name, key) =>
      name === 'prompts' && key === 'analyze' ? 'From a map.' : undefined,
    readBuiltinPrompt: async (name) => {
      if (name !== 'analyze-failures') throw new Error(`There is no prompt ${name}`);
      return 'From the image.';
    },
    onSecret: (value) => told.push(value),
  });
  return { ...made, told };
}

const ref = (name: string) => ({ name, key: 'token' });
const project = { path: 'group/app', actionTokenSecretRef: ref('action') };
const delivery = {
  bumps: { labels: ['bump'], authors: [] },
  edits: { allowPaths: ['apps/**'], denyPaths: [], allOrNothing: true, maxAttempts: 2 },
  explainGreen: true,
  migrateDroppedVersions: true,
  structuralMigration: true,
  migrateMaxDocs: 5,
  upstreamNotes: { enabled: true, maxReleases: 5, maxCommits: 10, maxBodyChars: 4000 },
  needsHumanLabel: 'needs-human',
};
const withRead = { dataSources: { gitlab: { allowedProjects: [], tokenSecretRef: ref('read') } } };

describe('references', () => {
  it('give the action token of the project, hidden from logs, and tell its value for redaction', async () => {
    const { actionToken, told } = references();
    const found = await actionToken(aWorkflow(), 'group/app');
    expect(found.kind === 'Ok' && found.value.reveal()).toBe('glpat-action');
    expect(JSON.stringify(found)).not.toContain('glpat');
    expect(told).toEqual(['glpat-action']);
  });

  it('refuse a project that the workflow does not list, and say which field to fill', async () => {
    const found = await references().actionToken(aWorkflow(), 'group/other');
    expect(found).toMatchObject({
      kind: 'Invalid',
      message: expect.stringContaining('spec.projects[group/other].actionTokenSecretRef'),
    });
  });

  it("prefer the project's own read token", async () => {
    const { gitlabToolToken } = references();
    const shared = await gitlabToolToken(aWorkflow(withRead), 'group/app');
    expect(shared.kind === 'Ok' && shared.value.reveal()).toBe('glpat-read');
    const own = { ...withRead, projects: [{ ...project, tokens: { gitlab: ref('app-read') } }] };
    const found = await gitlabToolToken(aWorkflow(own), 'group/app');
    expect(found.kind === 'Ok' && found.value.reveal()).toBe('glpat-app-read');
  });

  it('refuse a token of another tier by the name of the field, and never tell its value', async () => {
    const { gitlabToolToken, told } = references();
    const wrong = { dataSources: { gitlab: { allowedProjects: [], tokenSecretRef: ref('action') } } };
    const found = await gitlabToolToken(aWorkflow(wrong), 'group/app');
    expect(found).toMatchObject({
      kind: 'Invalid',
      reason: 'WrongTier',
      message: expect.stringMatching(/^spec\.dataSources\.gitlab\.tokenSecretRef: .*action.*tool/),
    });
    expect(told).toEqual([]);
  });

  it('give the kubeconfig of Konflux of the tool tier only, and none where it is not declared', async () => {
    const { konfluxKubeconfig, told } = references();
    const konflux = (name: string) => ({
      dataSources: {
        konflux: { clusterURL: 'https://api.example.org:6443/ns/team', kubeconfigSecretRef: ref(name) },
      },
    });
    expect(await konfluxKubeconfig(aWorkflow())).toEqual({ kind: 'Ok', value: undefined });
    expect(await konfluxKubeconfig(aWorkflow(konflux('action')))).toMatchObject({
      kind: 'Invalid',
      reason: 'WrongTier',
      message: expect.stringMatching(/^spec\.dataSources\.konflux\.kubeconfigSecretRef: /),
    });
    expect(told).toEqual([]);
    const found = await konfluxKubeconfig(aWorkflow(konflux('read')));
    expect(found.kind === 'Ok' && found.value?.reveal()).toBe('glpat-read');
    expect(told).toEqual(['glpat-read']);
  });

  it('give the kubeconfig of live reads of the tool tier, and none while they are off', async () => {
    const { liveKubeconfig, told } = references();
    const reads = (enabled: boolean, name: string) => {
      const liveReads = { enabled, kubeconfigSecretRef: ref(name) };
      return liveKubeconfig(aWorkflow({ delivery: { ...delivery, liveReads } }));
    };
    expect(await liveKubeconfig(aWorkflow())).toEqual({ kind: 'Ok', value: undefined });
    expect(await reads(false, 'read')).toEqual({ kind: 'Ok', value: undefined });
    expect(await reads(true, 'action')).toMatchObject({
      kind: 'Invalid',
      reason: 'WrongTier',
      message: expect.stringMatching(/^spec\.delivery\.liveReads\.kubeconfigSecretRef: /),
    });
    expect(told).toEqual([]);
    const found = await reads(true, 'read');
    expect(found.kind === 'Ok' && found.value?.reveal()).toBe('glpat-read');
  });

  it('need no model key where the workflow names none', async () => {
    const { modelKey } = references();
    expect(await modelKey(aWorkflow())).toEqual({ kind: 'Ok', value: undefined });
    const model = { ...aWorkflow().spec.model, apiKeySecretRef: ref('model') };
    expect(await modelKey(aWorkflow({ model }))).toEqual({ kind: 'Ok', value: 'sk-model' });
  });

  it.each([
    ['inline', { text: 'Look.' }, 'Look.'],
    ['in a ConfigMap', { configMapKeyRef: { name: 'prompts', key: 'analyze' } }, 'From a map.'],
    ['in the image', { builtin: 'analyze-failures' }, 'From the image.'],
  ])('find a prompt %s', async (_, prompt, value) => {
    expect(await references().prompt(aWorkflow({ prompt }))).toEqual({ kind: 'Ok', value });
  });

  it.each([
    [{ configMapKeyRef: { name: 'prompts', key: 'none' } }, 'ConfigMap agents/prompts with key none'],
    [{ builtin: 'nobody-wrote-this' }, 'spec.prompt.builtin: There is no prompt nobody-wrote-this'],
  ])('say which prompt is not there: %j', async (prompt, message) => {
    expect(await references().prompt(aWorkflow({ prompt }))).toMatchObject({
      kind: 'Invalid',
      message: expect.stringContaining(message),
    });
  });
});
