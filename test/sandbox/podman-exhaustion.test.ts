import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import { sandboxExhaustion } from './exhaustion.ts';

const limits = { memory: '256m', processes: 1024, tmp: '64m' };
const imageOf = () => ensurePodman((line) => console.error(`podman: ${line}`));

sandboxExhaustion('podman', async () => {
  const image = await imageOf();
  return {
    make: async () => {
      const sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger, limits });
      await sandbox.start();
      return sandbox;
    },
    dispose: async () => undefined,
  };
});

const tempDir = mkdtempSync(join(tmpdir(), 'podman-folders-'));
afterAll(() => rmSync(tempDir, { recursive: true }));

it('podman: what is left where podman runs is in a folder of the sandbox, and goes with it', async () => {
  const image = await imageOf();
  const sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger, limits, tempDir });
  await sandbox.start();
  const [folder = ''] = readdirSync(tempDir);
  const hog = await sandbox.exec('python3 -c "len(bytearray(1 << 30))"');
  expect(hog.kind === 'Exited' && hog.exitCode).toBe(137);
  // Podman's own way to say that memory ran out.
  await expect.poll(() => readdirSync(join(tempDir, folder)), { timeout: 60_000 }).toEqual(['oom']);
  expect(existsSync('oom')).toBe(false);
  await sandbox.cleanup();
  expect(readdirSync(tempDir)).toEqual([]);
});
