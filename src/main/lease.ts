import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { createClient } from '../kube/client.ts';
import type { Connection } from '../kube/config.ts';
import { holdReplicaLease, type ReplicaLease } from '../kube/lease/replica.ts';
import { LEASE_TIMING } from '../kube/lease/timing.ts';
import type { KubeClient } from '../kube/port.ts';
import { createTransport } from '../kube/transport.ts';

export interface JoinedLease extends Pick<ReplicaLease, 'lost' | 'isLate' | 'onChange'> {
  /** For Leases only. */
  readonly client: KubeClient;
  /** Replica and incarnation: another name after every start, so that its own earlier holds are somebody else's. */
  readonly holderName: string;
  /** False when what it holds may be taken over. Throws KubeError. */
  isHolderAlive(holder: string): Promise<boolean>;
  /** Gives the Lease back. */
  close(): Promise<void>;
}

/**
 * Takes the replica's Lease, over connections that nothing else uses: renewals wait for no other call, and what
 * times out elsewhere does not close theirs. Throws when it cannot be had.
 */
export async function joinLease({
  connection,
  namespace,
  replica,
  registry,
  log,
}: {
  readonly connection: Connection;
  readonly namespace: string;
  readonly replica: string;
  readonly registry: Registry;
  readonly log: Logger;
}): Promise<JoinedLease> {
  const transport = createTransport(connection);
  const client = createClient(transport, { timeoutMs: LEASE_TIMING.renewDeadlineMs });
  const lease = await holdReplicaLease({ client, transport, namespace, replica, logger: log }).catch(
    async (error: unknown) => {
      await transport.close();
      throw error;
    },
  );
  new Gauge({
    name: 'hummingbird_lease_age_seconds',
    help: 'Time since the newest renewal of the Lease of this replica that is known to have been made was sent.',
    registers: [registry],
    collect() {
      this.set(lease.ageMs() / 1000);
    },
  });
  return {
    client,
    holderName: holderOf(replica, lease.incarnation),
    lost: lease.lost,
    isLate: () => lease.isLate(),
    onChange: (handler) => lease.onChange(handler),
    async isHolderAlive(holder) {
      const { replica: other, incarnation } = partsOf(holder);
      return !(await lease.mayTakeOver(other, incarnation));
    },
    async close() {
      await lease.stop();
      await transport.close();
    },
  };
}

const holderOf = (replica: string, incarnation: number): string => `${replica}/${incarnation}`;

function partsOf(holder: string): { readonly replica: string; readonly incarnation: number } {
  const slash = holder.lastIndexOf('/');
  return { replica: holder.slice(0, slash), incarnation: Number(holder.slice(slash + 1)) };
}
