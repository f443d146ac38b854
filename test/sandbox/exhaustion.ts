import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRegistry, type ToolExecution } from '../../src/agent/tools/registry.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';

export interface SmallBackend {
  /** A started sandbox that may have 1024 processes, 256 MiB of memory and 64 MiB of disk. */
  make(): Promise<Sandbox>;
  dispose(): Promise<void>;
}

/** More processes than a sandbox may have, and no more: a test must not endanger a machine that sets no limit. */
const FORKS = 1_200;

/** Goes on after its forks fail, and has to be killed. */
const PERSISTENT = `python3 -c '
import os, time
for n in range(${FORKS}):
    try:
        if os.fork() == 0:
            os.execlp("sleep", "sleep", "600")
    except OSError:
        time.sleep(1)
time.sleep(600)'`;

/**
 * What a command can use up costs its sandbox at the most: whoever ran it is told, and goes on in the same sandbox or
 * in a fresh one.
 */
export function sandboxExhaustion(name: string, open: () => Promise<SmallBackend>): void {
  describe.concurrent(`${name}: a sandbox whose command`, { timeout: 300_000 }, () => {
    let backend: SmallBackend;
    beforeAll(async () => {
      backend = await open();
    });
    afterAll(() => backend?.dispose());

    /** The tools of one run that gets a fresh sandbox for each lost one. */
    async function aRun(execTimeoutMs = 60_000) {
      const made: Sandbox[] = [await backend.make()];
      const registry = createRegistry({
        tools: [],
        ...(made[0] === undefined ? {} : { sandbox: made[0] }),
        execTimeoutMs,
        replaceSandbox: async () => {
          const fresh = await backend.make();
          made.push(fresh);
          return fresh;
        },
      });
      const exec = (command: string): Promise<ToolExecution> =>
        registry.execute(
          { id: 'c', name: 'sandbox_exec', arguments: { command }, rawArguments: '' },
          { signal: AbortSignal.timeout(280_000) },
        );
      const close = () => Promise.all(made.map((sandbox) => sandbox.cleanup()));
      return { exec, close, made };
    }

    const goesOn = async (exec: (command: string) => Promise<ToolExecution>) =>
      expect(await exec('mkdir -p d; (echo still here)')).toMatchObject({
        outcome: 'Ok',
        result: { exit_code: 0, stdout: 'still here\n' },
      });

    it('fills it with processes is lost, and the run goes on in a fresh one', async () => {
      const { exec, close, made } = await aRun();
      const bomb = `i=0; while [ $i -lt ${FORKS} ]; do sleep 600 & i=$((i + 1)); done; sleep 600`;
      const { outcome, result } = await exec(bomb);
      expect(outcome, JSON.stringify(result)).toBe('SandboxLost');
      expect(made).toHaveLength(2);
      await goesOn(exec);
      await close();
    });

    it('fills it with processes and stays is killed at its time or for its memory, or the sandbox is lost', async () => {
      const { exec, close } = await aRun(10_000);
      const { outcome, result } = await exec(PERSISTENT);
      // So many processes may take more memory than there is before their time is over.
      const killed = JSON.stringify(result).includes('"exit_code":137');
      expect(killed || ['TimedOut', 'SandboxLost'].includes(outcome), JSON.stringify(result)).toBe(true);
      await goesOn(exec);
      await close();
    });

    it('takes more memory than there is is killed, and the run goes on', async () => {
      const { exec, close } = await aRun();
      const { outcome, result } = await exec('python3 -c "len(bytearray(1 << 30))"; echo status $?');
      expect(
        outcome === 'SandboxLost' || JSON.stringify(result).includes('137'),
        JSON.stringify(result),
      ).toBe(true);
      await goesOn(exec);
      await close();
    });

    it('fills the disk is told so, or the sandbox is lost, and the run goes on', async () => {
      const { exec, close } = await aRun();
      const seen: ToolExecution[] = [await exec('head -c 150000000 /dev/zero >big; echo status $?')];
      // An eviction comes when the kubelet has looked.
      while (!isFull(seen.at(-1)) && seen.length < 200) seen.push(await exec('sleep 1'));
      expect(isFull(seen.at(-1)), JSON.stringify(seen.at(-1))).toBe(true);
      expect(await exec('rm -f big')).toMatchObject({ outcome: 'Ok' });
      await goesOn(exec);
      await close();
    });
  });
}

const isFull = (execution: ToolExecution | undefined): boolean =>
  execution?.outcome === 'SandboxLost' || execution?.result['disk_full'] !== undefined;
