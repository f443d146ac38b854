import type { SandboxPoolSpec } from '../../crds/sandbox-pool.ts';
import type { MachineSpec } from './kinds.ts';

export type MachineSettings = Omit<NonNullable<SandboxPoolSpec['virtualMachineInstance']>, 'ssh'>;

/** Serial of the disk with the public keys: the image's own service looks for it at boot. */
export const KEYS_SERIAL = 'ssh-pubkeys';
/** The key of the Secret behind that disk; a file of this name on it. */
export const KEYS_FILE = 'authorized_keys';
export const SSH_PORT = 22;

/**
 * A machine with one disk, one network interface behind the launcher pod's address, and the public keys in
 * `keysSecret`. No service account, no cloud-init, no console for anybody: what it knows is in its image.
 */
export function machineSpec(settings: MachineSettings, keysSecret: string): MachineSpec {
  const { containerDisk, imagePullPolicy, cpuCores, memory, nodeSelector, tolerations } = settings;
  const guest = String(memory);
  return {
    domain: {
      cpu: { cores: cpuCores },
      memory: { guest },
      resources: { requests: { memory: guest } },
      devices: {
        autoattachGraphicsDevice: false,
        disks: [
          { name: 'root', disk: { bus: 'virtio' } },
          { name: KEYS_SERIAL, serial: KEYS_SERIAL, disk: { bus: 'virtio' } },
        ],
        interfaces: [{ name: 'default', masquerade: {} }],
        rng: {},
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [
      {
        name: 'root',
        containerDisk: {
          image: containerDisk,
          ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
        },
      },
      { name: KEYS_SERIAL, secret: { secretName: keysSecret } },
    ],
    // Nothing in it is worth a shutdown, and its address is not free before it is gone.
    terminationGracePeriodSeconds: 0,
    // Another node means another address and a broken connection: a drained node ends the machine instead.
    evictionStrategy: 'None',
    readinessProbe: { tcpSocket: { port: SSH_PORT }, periodSeconds: 2, failureThreshold: 1 },
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
  };
}
