import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { aKillWorld, type KillWorld } from './kill-world.ts';
import type { World } from './world.ts';

const QUESTION = 'Which file did you keep?';
const isPodPatch = (write: string): boolean => /PATCH .*\/pods\//.test(write);
const isStatusOf = (write: string, run: string): boolean => write.includes(`agentruns/${run}/status`);

/** Promise 9 for what a run leaves to the next one of its session, and what that one takes. */
describe('an operator that is killed while a sandbox is left or taken back', () => {
  let kills: KillWorld;
  let world: World;

  beforeAll(async () => {
    kills = await aKillWorld({
      replicas: 2,
      poolSpec: { linger: { duration: '10m', max: 20 } },
      scripts: {
        'test-script': ({ messages }) => {
          const last = JSON.stringify(messages.at(-1));
          if (last.includes(QUESTION))
            return { toolCalls: [{ name: 'sandbox_exec', args: { command: 'cat /tmp/data/kept' } }] };
          if (last.includes('from the first run')) return { text: 'I kept "from the first run".' };
          if (messages.some(({ role }) => role === 'tool')) return { text: 'Kept.' };
          const command = 'echo from the first run > /tmp/data/kept';
          return { toolCalls: [{ name: 'sandbox_exec', args: { command } }] };
        },
      },
      workflowSpec: { limits: { timeout: '120s' } },
    });
    ({ world } = kills);
  }, 300_000);
  afterAll(() => kills?.close());

  /** Pods that linger, and whose; a pod that nobody owns and that lingers for nobody is an orphan. */
  async function active(): Promise<{
    readonly lingering: Readonly<Record<string, string>>;
    orphans: string[];
  }> {
    const selector = ['-l', 'hummingbird/role=active'];
    const { items } = JSON.parse(
      await world.kubectl(['get', 'pods', '-n', world.namespaces.sandboxes, ...selector, '-o', 'json']),
    );
    const lingering: Record<string, string> = {};
    const orphans: string[] = [];
    for (const { metadata } of items) {
      const session = metadata.annotations['hummingbird/session-id'];
      if (metadata.deletionTimestamp !== undefined) continue;
      if (session !== undefined && metadata.labels['hummingbird.dev/run'] === undefined)
        lingering[session] = metadata.name;
      else orphans.push(metadata.name);
    }
    return { lingering, orphans };
  }

  async function killedAt(
    name: string,
    spec: object,
    isIt: (write: string, index: number) => boolean,
  ): Promise<AgentRun> {
    const kill = kills.killAt(isIt);
    await world.startRun(name, spec);
    const late = world.waitEnd(name).then(() => false);
    expect(await Promise.race([kill.done, late])).toBe(true);
    kill.cancel();
    await world.restart();
    return world.waitEnd(name);
  }

  it.each([
    ['the patch that lets it linger', 0],
    ['the status that tells of it', 1],
  ])(
    'right after %s: the sandbox lingers once, for its session, with its files',
    async (_, after) => {
      let pods = 0;
      let statuses = 0;
      const name = `left-${after}`;
      const run = await killedAt(name, {}, (write) => {
        if (isPodPatch(write)) pods += 1;
        // The first patch of a pod is the claim.
        else if (pods === 2 && isStatusOf(write, name)) statuses += 1;
        return pods === 2 && statuses === after;
      });
      expect(run.status?.phase).toBe('Succeeded');
      const session = run.metadata.uid ?? '';
      const { lingering, orphans } = await active();
      expect(lingering[session]).toBe(run.status?.sandbox?.name);
      expect(orphans).toEqual([]);
      expect(await world.podsOf(run)).toEqual([]);

      // The reply finds it, and is killed in its turn right after it took it, and right after it said so.
      let taken = 0;
      let told = 0;
      const reply = `reply-${after}`;
      const second = await killedAt(reply, { sessionRef: { name: session }, message: QUESTION }, (write) => {
        if (isPodPatch(write)) taken += 1;
        else if (taken === 1 && isStatusOf(write, reply)) told += 1;
        return taken === 1 && told === after;
      });
      expect(second.status).toMatchObject({
        phase: 'Succeeded',
        sandbox: { name: run.status?.sandbox?.name },
      });
      expect(world.notes().at(-1)).toContain('I kept "from the first run".');
      const left = await active();
      expect(left.lingering[session]).toBe(run.status?.sandbox?.name);
      expect(left.orphans).toEqual([]);
    },
    300_000,
  );
});
