import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperatorProcess } from '../../hack/operator/process.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, type World } from './world.ts';

const ANSWER = 'The cache is not emptied.';

/** Two replicas share the runs; whichever goes, the other one finishes what it held. */
describe('two replicas', () => {
  let world: World;
  let holder: OperatorProcess;
  let other: OperatorProcess;
  /** The model keeps its second answer back until this resolves, so that a run stands in the middle of its loop. */
  let gate = Promise.withResolvers<void>();

  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      scripts: {
        'test-script': async ({ messages }) => {
          if (!messages.some(({ role }) => role === 'tool'))
            return {
              toolCalls: [
                { name: 'sandbox_exec', args: { command: 'echo kept > /tmp/data/kept; echo done' } },
              ],
            };
          await gate.promise;
          return { text: ANSWER };
        },
      },
    });
    await world.operator.waitReady();
    holder = world.operator;
  });
  afterAll(async () => {
    gate.resolve();
    await Promise.all([holder?.stop('SIGKILL'), other?.stop('SIGKILL')]);
    await world?.close();
  });

  /** Starts the run, which `holder` takes, then the other replica; resolves when the model is asked the second time. */
  async function midLoop(name: string, otherReplica: string): Promise<void> {
    gate = Promise.withResolvers();
    const asked = world.openai.requests.length;
    await world.startRun(name);
    await world.waitRun(name, 'a tool call', ({ status }) => (status?.toolCalls ?? 0) >= 1);
    await expect.poll(() => world.openai.requests.length - asked, { timeout: 60_000 }).toBe(2);
    other = await world.restart({
      replicaId: otherReplica,
      logFile: join(world.storeDir, `${otherReplica}.log`),
    });
    await other.waitReady();
  }

  it('finish a run whose holder was killed in the middle of its loop, with one note and no orphan pod', async () => {
    const before = world.notes().length;
    await midLoop('killed', 'operator-1');
    await holder.stop('SIGKILL');
    gate.resolve();
    // The Lease of a dead replica ends after 10 s; 20 s is the promise, the rest is for a busy machine.
    const run = await world.waitEnd('killed');
    expect(run.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 } });
    expect(run.status?.holder?.replica).toMatch(/^operator-1\//);
    expect(world.notes().slice(before)).toEqual([expect.stringContaining(ANSWER)]);
    expect(await world.podsOf(run)).toEqual([]);
    expect(await world.events('killed')).toContain('TakenOver');
    holder = other;
  });

  it('go on at once when the holder is asked to stop, and the run is not cancelled', async () => {
    const before = world.notes().length;
    const asked = world.openai.requests.length;
    await midLoop('stopped', 'operator-2');
    expect((await world.getRun('stopped')).status?.holder?.replica).toMatch(/^operator-1\//);
    // The model still keeps its answer back: a loop that went on here would keep the process alive.
    expect(await holder.stop('SIGTERM')).toBe(0);
    gate.resolve();
    const run = await world.waitEnd('stopped');
    expect(run.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 } });
    expect(run.status?.holder?.replica).toMatch(/^operator-2\//);
    expect(world.notes().slice(before)).toEqual([expect.stringContaining(ANSWER)]);
    expect(await world.podsOf(run)).toEqual([]);
    // Two calls make the analysis; the one that the stop cut short is made again, and no other.
    expect(world.openai.requests.length - asked).toBe(3);
    holder = other;
  });
});
