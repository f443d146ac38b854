import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aKillWorld, type KillWorld, pause } from './kill-world.ts';
import type { World } from './world.ts';

const SESSION_NOTE = 'The cache is not emptied.';

/**
 * One part of the writes, so that two files share the work: each kill takes some seconds.
 *
 * Promise 9: killed at any write, it converges to the same end. A first run shows which writes there are; then,
 * for each, a run is killed (SIGKILL) right after that write, its answer lost. (Before a write the world is as it was
 * after the one before.)
 */
export function describeKills(part: string, chosen: (index: number) => boolean): void {
  describe(`an operator that is killed at a write and started again (${part})`, () => {
    let kills: KillWorld;
    let world: World;
    let writes: readonly string[];

    beforeAll(async () => {
      kills = await aKillWorld({
        replicas: 2,
        // What a run leaves to a reply has kills of its own.
        poolSpec: { linger: { duration: '0s' } },
        scripts: {
          'test-script': ({ messages }) =>
            messages.some(({ role }) => role === 'tool')
              ? { text: SESSION_NOTE }
              : { toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo from the sandbox' } }] },
        },
        workflowSpec: { limits: { timeout: '5m' } },
      });
      ({ world } = kills);
      // One line per write of an undisturbed run, in order; its index is where later runs are killed.
      writes = await kills.writesDuring(async () => {
        await world.startRun('clean');
        const run = await world.waitEnd('clean');
        expect(run.status?.phase).toBe('Succeeded');
      });
    }, 300_000);

    afterAll(() => kills?.close());

    it('sees every kind of write in a clean run', () => {
      const kinds = writes.map((write) =>
        write.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|analysis-[a-z0-9-]+|\d+/g, '*'),
      );
      for (const expected of [
        /agentruns\/clean$/,
        /agentruns\/clean\/status$/,
        /gitlab POST .*notes$/,
        /PATCH .*pods\//,
        /exec$/,
        /store PUT .*checkpoints/,
        /gitlab PUT .*notes/,
        /agentsessions/,
        /DELETE .*pods\//,
      ])
        expect(
          kinds.some((kind) => expected.test(kind)),
          `${expected} in\n${kinds.join('\n')}`,
        ).toBe(true);
    });

    it('ends with one note and no orphan pod, whichever write it was', async () => {
      const problems: string[] = [];
      const unreached: string[] = [];
      for (const [index, write] of writes.entries()) {
        if (!chosen(index)) continue;
        const name = `kill-${index}`;
        const before = world.notes().length;
        const kill = kills.killAt((_, at) => at === index);
        await world.startRun(name);
        // The last writes come after the end is visible: they are waited for a moment longer.
        const late = world.waitEnd(name).then(() => pause(2_000));
        const killed = await Promise.race([kill.done, late.then(() => false)]);
        kill.cancel();
        if (!killed) {
          unreached.push(`${index} ${write}`);
          continue;
        }
        await world.restart();
        const run = await world.waitEnd(name);
        const added = world.notes().slice(before);
        if (run.status?.phase !== 'Succeeded')
          problems.push(`${index} ${write}: ${run.status?.phase} ${JSON.stringify(run.status?.outcome)}`);
        if (added.length !== 1) problems.push(`${index} ${write}: ${added.length} notes`);
        else if (!added[0]?.includes(SESSION_NOTE))
          problems.push(`${index} ${write}: note says ${added[0]?.slice(0, 200)}`);
        const pods = await world.podsOf(run);
        if (pods.length > 0) problems.push(`${index} ${write}: ${pods.join(' ')} left`);
      }
      expect(problems).toEqual([]);
      // Progress that falls together is one write: a run may have one or two less than the first one had.
      expect(unreached.length, unreached.join('\n')).toBeLessThanOrEqual(2);
    }, 1_200_000);
  });
}
