import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, type World } from './world.ts';

describe('an AgentRun that somebody applied', () => {
  let world: World;
  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      scripts: {
        'test-script': ({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? { text: 'The cache is not emptied.' }
            : { toolCalls: [{ name: 'sandbox_exec', args: { command: 'id -u; echo from the sandbox' } }] },
      },
    });
    await world.operator.waitReady();
  });
  afterAll(() => world?.close());

  it('is analysed in a sandbox and answered in one note', async () => {
    await world.startRun('by-hand');
    const run = await world.waitEnd('by-hand');
    expect(run.status?.phase).toBe('Succeeded');
    expect(world.notes()).toHaveLength(1);
    expect(world.notes()[0]).toContain('The cache is not emptied.');
    expect(world.notes()[0]).toContain('from the sandbox');
    expect(await world.podsOf(run)).toEqual([]);
  });
});
