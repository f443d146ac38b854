import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentWorkflow } from '../../src/crds/agent-workflow.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, type World } from './world.ts';

/** Spare for a loaded machine; the operator looks again every 5 s while something is missing. */
const ACCEPTED_TIMEOUT = '--timeout=120s';

let world: World;
/** Set: the model asks for a tool first, and keeps its answer back until this resolves. */
let gate: PromiseWithResolvers<void> | undefined;
beforeAll(async () => {
  world = await aWorld(await sharedCluster(), {
    replicas: 0,
    workflowSpec: {
      sandbox: { none: true },
      prompt: { text: 'Say what the first prompt says.' },
      publish: { progress: true },
    },
    scripts: {
      'test-script': async ({ messages }) => {
        if (gate !== undefined && !messages.some(({ role }) => role === 'tool'))
          return { toolCalls: [{ name: 'gitlab_get_mr_details', args: {} }] };
        await gate?.promise;
        return {
          text: String(messages[0]?.content).includes('second prompt') ? 'By the second.' : 'By the first.',
        };
      },
    },
  });
  await world.operator.waitReady(120_000);
  await until('Ready', 'true');
}, 300_000);
afterAll(() => world?.close());

const workflow = () => ['agentworkflow/analyze-failures', '-n', world.namespaces.agents];

async function until(condition: string, status: string): Promise<AgentWorkflow> {
  await world.kubectl(['wait', `--for=condition=${condition}=${status}`, ...workflow(), ACCEPTED_TIMEOUT]);
  return JSON.parse(await world.kubectl(['get', ...workflow(), '-o', 'json']));
}

const change = (spec: object) =>
  world.kubectl(['patch', ...workflow(), '--type=merge', '-p', JSON.stringify({ spec })]);

async function noteOf(run: string): Promise<string> {
  const before = world.notes().length;
  await world.startRun(run);
  const ended = await world.waitEnd(run);
  expect(ended.status?.phase, JSON.stringify(ended.status?.conditions)).toBe('Succeeded');
  return world.notes()[before] ?? '';
}

it('a bad update of a workflow leaves the last accepted generation at work until it is mended', async () => {
  const { status: first } = await until('Accepted', 'true');
  expect(first?.projects).toMatchObject([{ ready: true, botUserId: expect.any(Number) }]);

  await change({ prompt: { text: null, configMapKeyRef: { name: 'prompts', key: 'second' } } });
  const { metadata, status } = await until('Accepted', 'false');
  expect(status?.acceptedGeneration).toBe(first?.acceptedGeneration);
  expect(metadata.generation).toBeGreaterThan(first?.acceptedGeneration ?? 0);
  expect(status?.conditions?.find(({ type }) => type === 'Accepted')).toMatchObject({
    reason: 'UnresolvedRefs',
    message: expect.stringContaining(`New runs use generation ${first?.acceptedGeneration}`),
  });
  expect(status?.projects).toEqual(first?.projects);
  expect(await noteOf('with-the-first')).toContain('By the first.');
  // What was accepted outlives the process that saw it.
  await world.operator.stop('SIGKILL');
  const next = await world.restart();
  await next.waitReady(120_000);
  expect(await noteOf('after-a-restart')).toContain('By the first.');

  await world.kubectl([
    ...['create', 'configmap', 'prompts', '-n', world.namespaces.agents],
    '--from-literal=second=Say what the second prompt says.',
  ]);
  const mended = await until('Accepted', 'true');
  expect(mended.status?.acceptedGeneration).toBe(mended.metadata.generation);
  expect(await noteOf('with-the-second')).toContain('By the second.');
}, 600_000);

it('a run under way keeps the configuration it began with, also when another replica goes on with it', async () => {
  await change({ prompt: { text: 'Say what the first prompt says.', configMapKeyRef: null } });
  const { status: accepted } = await until('Ready', 'true');
  gate = Promise.withResolvers();
  const before = world.notes().length;
  await world.startRun('in-flight');
  const begun = await world.waitRun(
    'in-flight',
    'a tool call',
    ({ status }) => (status?.toolCalls ?? 0) >= 1,
  );
  expect(begun.status?.workflow?.generation).toBe(accepted?.acceptedGeneration);
  const revision = begun.status?.workflow?.revision ?? '';
  // As if its note had been posted long ago: progress is shown once a minute.
  expect(world.notes()[before]).not.toContain('model call');
  const longAgo = { status: { noteIntent: { time: '2026-01-01T00:00:00Z' } } };
  await world.kubectl([
    ...['patch', 'agentrun', 'in-flight', '-n', world.namespaces.agents, '--subresource=status'],
    ...['--type=merge', '-p', JSON.stringify(longAgo)],
  ]);
  await expect
    .poll(() => world.notes()[before], { timeout: 60_000 })
    .toMatch(/1 model call.*1 tool call, lately `gitlab_get_mr_details`/);

  await change({ prompt: { text: 'Say what the second prompt says.' }, limits: { maxIterations: 1 } });
  const { metadata } = await until('Accepted', 'true');
  await world.kubectl([
    ...['wait', `--for=jsonpath={.status.acceptedGeneration}=${metadata.generation}`],
    ...[...workflow(), ACCEPTED_TIMEOUT],
  ]);
  await world.operator.stop('SIGKILL');
  const next = await world.restart();
  await next.waitReady(120_000);
  gate.resolve();
  const ended = await world.waitEnd('in-flight');
  // One call more than the new configuration allows.
  expect(ended.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 }, iterations: 2 });
  expect(ended.status?.workflow?.revision).toBe(revision);
  expect(world.notes().slice(before)).toEqual([expect.stringContaining('By the first.')]);
  expect(world.notes()[before]).not.toContain('lately');
  gate = undefined;
  expect(await noteOf('with-the-change')).toContain('By the second.');
}, 600_000);
