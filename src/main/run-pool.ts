import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { machineForRun } from '../controllers/pool/machines/manifests.ts';
import { podForRun } from '../controllers/pool/manifests.ts';
import { labelValue } from '../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../crds/meta.ts';
import { SANDBOX_POOLS } from '../crds/sandbox-pool.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { poolsByBackend } from '../sandbox/pool/by-backend.ts';
import { podOpener } from '../sandbox/pool/open-pod.ts';
import { podPool } from '../sandbox/pool/pool.ts';
import { type MachinePool, machinePool } from '../sandbox/pool/vmi-pool.ts';
import { type SandboxProvider, SandboxUnavailableError } from '../sandbox/port.ts';
import { SettingsError } from '../settings/operator.ts';
import { openCluster, type RunCluster } from './run-cluster.ts';
import { AFTER_RUN_MS, loggerOf, type RunSandboxes, type RunSandboxOptions } from './run-sandbox-parts.ts';

const CLAIM_RETRY_MS = 250;

/** Sandboxes of a SandboxPool, claimed as the operator claims them. */
export function poolSandboxes(options: RunSandboxOptions): RunSandboxes {
  const { run, sessionId, effective, progress } = options;
  const cluster = openCluster(options);
  const pool = poolOf(options, cluster);
  const logger = loggerOf(options);
  const machines = machinesOf(options, cluster);
  const sandboxes =
    options.backend === 'kubevirtpool'
      ? machines
      : poolsByBackend({
          pods: podsOf(options, cluster),
          machines,
          backendOf: async (ref) => (await cluster.kube.get(SANDBOX_POOLS, ref))?.spec.backend,
        });
  const { name: workflow } = run.spec.workflowRef;
  let epoch = 0;
  return {
    async open(signal) {
      epoch += 1;
      for (let said = ''; ; ) {
        signal.throwIfAborted();
        const claimed = await sandboxes.claim(
          {
            runUid: run.metadata.uid ?? '',
            runName: run.metadata.name ?? '',
            // No AgentRun stands behind it; a namespace would make the reaper look for one, and find it gone.
            runNamespace: '',
            ...{ workflow, sessionId, pool, epoch },
            labels: { [LABELS.managedBy]: MANAGED_BY, [LABELS.workflow]: labelValue(workflow) },
            reapBy: new Date(systemClock.now().getTime() + effective.timeoutMs + AFTER_RUN_MS),
          },
          signal,
        );
        if (claimed.kind === 'Unavailable') throw new SandboxUnavailableError(claimed.message);
        if (claimed.kind === 'Claimed') {
          await claimed.sandbox.start(signal);
          return claimed.sandbox;
        }
        if (claimed.message !== said) progress.say(claimed.message);
        said = claimed.message;
        await sleep(systemClock, CLAIM_RETRY_MS, signal);
      }
    },
    async close() {
      // What an interrupted claim has left behind.
      await sandboxes.release(run.metadata.uid ?? '', pool.namespace).catch((error: unknown) => {
        logger.warn({ error }, 'sandboxes of this run could not be released; the reaper will');
      });
      await machines.close();
      await cluster.close();
    },
  };
}

function podsOf(options: RunSandboxOptions, { kube, exec: connection }: RunCluster): SandboxProvider {
  return podPool({
    kube,
    podOf: podForRun,
    openPod: podOpener({ connection, client: kube, logger: loggerOf(options) }),
  });
}

function machinesOf(options: RunSandboxOptions, { kube }: RunCluster): MachinePool {
  const { config, env, redactor } = options;
  const file = config.settings.sandbox.vm_ssh_private_key;
  return machinePool({
    ...{ kube, env, tempDir: tmpdir(), logger: loggerOf(options) },
    machineOf: machineForRun,
    onSecret: (value) => redactor.add(value),
    ...(file === undefined ? {} : { privateKey: () => readFile(file, 'utf8') }),
  });
}

/** The run's own word, else the flags, else the file. */
function poolOf(
  { settings, config, run }: RunSandboxOptions,
  cluster: RunCluster,
): { readonly name: string; readonly namespace: string } {
  const wanted = run.spec.sandbox?.poolRef;
  const name = wanted?.name ?? settings.pool ?? config.settings.sandbox.pool;
  if (name === undefined)
    throw new SettingsError(
      `no SandboxPool is named: set settings.sandbox.pool in ${config.path}, or give --pool`,
    );
  return { name, namespace: wanted?.namespace ?? cluster.namespace() };
}
