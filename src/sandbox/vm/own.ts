import { generateKeyPairSync, randomInt, randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { isKubeError, KubeError } from '../../kube/errors.ts';
import { NETWORK_POLICY, SECRET } from '../../kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { type SshKeyPair, sshKeyPair } from '../../kube/kubevirt/ssh-key.ts';
import { errorFields } from '../../kube/log.ts';
import type { KubeClient } from '../../kube/port.ts';
import { proveIsolated, targetsOn } from '../egress/proof.ts';
import { type Sandbox, SandboxUnavailableError } from '../port.ts';
import { type ConnectionOptions, MachineConnection } from './connection.ts';
import { type MachineSandboxOptions, machineSandbox } from './machine.ts';
import { type OwnMachineWish, ownKeys, ownMachine, ownMachinePolicy } from './own-manifest.ts';

export interface OwnMachineOptions
  extends Pick<MachineSandboxOptions, 'logger' | 'clock' | 'newId' | 'machineTimeoutMs' | 'sshTimeoutMs'>,
    Pick<ConnectionOptions, 'tempDir' | 'env'> {
  readonly kube: KubeClient;
  /** Whether the machine must be shown to reach nothing before it is handed over. */
  readonly prove: boolean;
  /** The API server's address, tried from inside; undefined where only its name is known. */
  readonly apiServer?: { readonly address: string; readonly port: number } | undefined;
  /** Default: a fresh ed25519 pair. */
  readonly newKeyPair?: () => SshKeyPair;
}

/**
 * Makes a machine with a key pair of its own and waits until a command runs in it, and reaches nothing. Its NetworkPolicy and the Secret
 * with its public key go with it; the private key is in this process only. Rejects with `SandboxUnavailableError`,
 * `SandboxLostError` or the signal's reason; then nothing is left behind.
 */
export async function openOwnMachine(
  wish: OwnMachineWish,
  options: OwnMachineOptions,
  signal?: AbortSignal,
): Promise<Sandbox> {
  const { kube, newKeyPair = freshKeyPair, clock = systemClock, newId = randomUUID } = options;
  const { namespace, name, user } = wish;
  signal?.throwIfAborted();
  const { privateKey, publicKey } = newKeyPair();
  const machine = await makeMachine(wish, publicKey, options);
  const connection = new MachineConnection({
    ...{ kube, namespace, name, clock, newId, tempDir: options.tempDir, env: options.env },
    ...(machine.metadata.uid === undefined ? {} : { uid: machine.metadata.uid }),
    login: async () => ({ user, privateKey }),
  });
  const sandbox = machineSandbox({
    ...options,
    ...{ connection, clock, newId },
    ref: { kind: 'VirtualMachineInstance', name, namespace },
    deleteMachine: () => deleteMachine(kube, machine),
  });
  try {
    await sandbox.start(signal);
    if (options.prove) await prove(sandbox, { ...options, clock }, signal);
    return sandbox;
  } catch (error) {
    await sandbox.cleanup();
    throw error;
  }
}

async function prove(
  sandbox: Sandbox,
  { apiServer, logger, clock }: OwnMachineOptions & { readonly clock: Clock },
  signal: AbortSignal | undefined,
): Promise<void> {
  logger.info({}, 'showing that the machine reaches no network');
  const onOpen = (what: string) => logger.info({}, `not isolated yet: ${what}`);
  await proveIsolated(sandbox, targetsOn(undefined, apiServer), { clock, onOpen }, signal);
}

const freshKeyPair = (): SshKeyPair =>
  sshKeyPair(generateKeyPairSync('ed25519').privateKey, randomInt(2 ** 32));

/**
 * The machine first, since what belongs to it must name its uid: its launcher waits for the Secret. Without the
 * caller's signal: a request given up half-way would leave it unknown whether there is a machine.
 */
async function makeMachine(
  wish: OwnMachineWish,
  publicKey: string,
  { kube, logger }: OwnMachineOptions,
): Promise<VirtualMachineInstance> {
  const { namespace, name } = wish;
  let what = 'VirtualMachineInstance';
  try {
    const machine = await kube.create(VIRTUAL_MACHINE_INSTANCE, ownMachine(wish));
    what = 'NetworkPolicy';
    await kube.create(NETWORK_POLICY, ownMachinePolicy(wish, machine));
    what = 'Secret';
    await kube.create(SECRET, ownKeys(wish, machine, publicKey));
    return machine;
  } catch (error) {
    await removeAll(kube, wish).catch((failure: unknown) =>
      logger.warn({ namespace, machine: name, ...errorFields(failure) }, 'sandbox machine not deleted'),
    );
    if (!(error instanceof KubeError)) throw error;
    const hint =
      what === 'VirtualMachineInstance' && error.reason === 'NotFound' ? '; is KubeVirt installed?' : '';
    throw new SandboxUnavailableError(
      `${what} ${namespace}/${name} of the sandbox cannot be made: ${error.message}${hint}`,
      { cause: error },
    );
  }
}

/** The rest at once too: until the garbage collector comes, a Secret would tell that there was a machine. */
async function deleteMachine(kube: KubeClient, machine: VirtualMachineInstance): Promise<void> {
  const { namespace = '', name = '', uid = '' } = machine.metadata;
  try {
    await kube.delete(VIRTUAL_MACHINE_INSTANCE, { namespace, name }, { uid });
  } catch (error) {
    // Another machine has the name already: the one meant is gone, and what is left is the other's.
    if (!isKubeError(error, 'Conflict')) throw error;
    return;
  }
  await kube.delete(SECRET, { namespace, name });
}

/** What an attempt may have left: nothing runs in it yet, so the order does not matter. */
async function removeAll(kube: KubeClient, { namespace, name }: OwnMachineWish): Promise<void> {
  for (const kind of [VIRTUAL_MACHINE_INSTANCE, NETWORK_POLICY, SECRET])
    await kube.delete(kind, { namespace, name }).catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error;
    });
}
