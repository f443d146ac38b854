import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../builders/pool.ts';
import { sharedCluster } from '../cluster/shared.ts';
import type { Script } from '../fakes/openai/server.ts';
import { aWorld, type World } from './world.ts';

/** More than a pod of the cluster may have, and no more. */
const PROCESSES = 'i=0; while [ $i -lt 1200 ]; do sleep 600 & i=$((i + 1)); done';
const MEMORY = 'python3 -c "len(bytearray(1 << 30))"';

/** The command, then another one, then what both answered. */
const script =
  (command: string): Script =>
  ({ messages }) => {
    const answers = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
    if (answers.length === 0) return { toolCalls: [{ name: 'sandbox_exec', args: { command } }] };
    if (answers.length === 1)
      return { toolCalls: [{ name: 'sandbox_exec', args: { command: '(echo still here)' } }] };
    return { text: `First: ${answers[0]}\n\nThen: ${answers[1]}` };
  };

describe('a command that uses up its sandbox', () => {
  let world: World;
  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      scripts: { processes: script(PROCESSES), memory: script(MEMORY) },
      workflowSpec: { limits: { timeout: '10m' } },
    });
    await world.operator.waitReady(60_000);
  });
  afterAll(() => world?.close());

  it.each([
    ['processes', /sandbox was lost/],
    ['memory', /137|sandbox was lost/],
  ])(
    'by its %s costs the run nothing but that',
    async (model, told) => {
      const pid = world.operator.pid;
      await world.startRun(model, { model: { name: model } });
      const run = await world.waitEnd(model, 240_000);
      expect(run.status?.phase, JSON.stringify(run.status)).toBe('Succeeded');
      const note = world.notes().at(-1) ?? '';
      expect(note).toMatch(told);
      expect(note).toContain('still here');
      if (model === 'processes') expect(await world.events(model)).toContain('SandboxLost');
      await until('no pod of the run', async () => (await world.podsOf(run)).length === 0);
      expect(world.operator).toMatchObject({ pid, running: true });
    },
    300_000,
  );
});
