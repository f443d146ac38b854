import { ensurePodman } from '../../hack/podman/podman.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import { sandboxExhaustion } from './exhaustion.ts';

sandboxExhaustion('podman', async () => {
  const image = await ensurePodman((line) => console.error(`podman: ${line}`));
  const limits = { memory: '256m', processes: 1024, tmp: '64m' };
  return {
    make: async () => {
      const sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger, limits });
      await sandbox.start();
      return sandbox;
    },
    dispose: async () => undefined,
  };
});
