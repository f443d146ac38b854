import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentWorkflow } from '../../src/crds/agent-workflow.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, type World } from './world.ts';

/** Spare for a loaded machine; the operator looks again every 5 s while something is missing. */
const ACCEPTED_TIMEOUT = '--timeout=120s';

let world: World;
beforeAll(async () => {
  world = await aWorld(await sharedCluster(), {
    replicas: 0,
    workflowSpec: { sandbox: { none: true }, prompt: { text: 'Say what the first prompt says.' } },
    scripts: {
      'test-script': ({ messages }) => ({
        text: String(messages[0]?.content).includes('second prompt') ? 'By the second.' : 'By the first.',
      }),
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
  const ended = await world.waitEnd(run, 120_000);
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
