import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MachineSettings } from '../../src/kube/kubevirt/machine.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { createTransport } from '../../src/kube/transport.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { type OwnMachineOptions, openOwnMachine } from '../../src/sandbox/vm/own.ts';
import { type KubeVirt, type KubeVirtOptions, startKubeVirt } from '../fakes/kubevirt/stand-in.ts';
import { type KubeAccess, kubeAccess, type TwoNamespaces, twoNamespaces, unique } from './kube-access.ts';

export const MACHINE: MachineSettings = {
  containerDisk: 'registry.test/sandbox-vm:1',
  cpuCores: 1,
  memory: '512Mi',
};

/** Namespaces of the test's own with the stand-in for KubeVirt at work in the one of the sandboxes. */
export interface MachineWorld extends KubeAccess {
  readonly namespaces: TwoNamespaces;
  readonly kubevirt: KubeVirt;
  /** Where connections keep their files. */
  readonly tempDir: string;
  /** A machine of its own, started. */
  own(
    options?: Partial<OwnMachineOptions> & { readonly name?: string; readonly reapBy?: Date },
    signal?: AbortSignal,
  ): Promise<Sandbox>;
  /** Names of files below `tempDir`. */
  leftFiles(): Promise<readonly string[]>;
}

export async function machineWorld(
  faults?: KubeVirtOptions['faults'],
  boot?: KubeVirtOptions['boot'],
): Promise<MachineWorld> {
  const access = await kubeAccess();
  const namespaces = await twoNamespaces();
  const namespace = namespaces.sandboxes;
  const transport = createTransport(access.connection);
  const tempDir = await mkdtemp(join(tmpdir(), 'machines-'));
  const kubevirt = await startKubeVirt({
    kube: access.kube,
    transport,
    namespace,
    ...(faults === undefined ? {} : { faults }),
    ...(boot === undefined ? {} : { boot }),
  });
  return {
    ...access,
    namespaces,
    kubevirt,
    tempDir,
    own: ({ name = unique('vm'), reapBy = new Date(Date.now() + 600_000), ...options } = {}, signal) =>
      openOwnMachine(
        {
          ...{ namespace, name, machine: MACHINE, user: 'sandbox', runUid: crypto.randomUUID() },
          workflow: 'analyze',
          reapBy,
        },
        {
          ...{ kube: access.kube, logger: silentLogger, tempDir, env: process.env, prove: false },
          ...options,
        },
        signal,
      ),
    async leftFiles() {
      return await readdir(tempDir, { recursive: true });
    },
    async close() {
      await kubevirt.close();
      await namespaces.remove();
      await transport.close();
      await access.close();
      await rm(tempDir, { recursive: true, force: true });
    },
  };
}
