import { createHash } from 'node:crypto';
import { LABELS, MANAGED_BY } from '../crds/meta.ts';
import { type Clock, sleep } from './clock.ts';
import { isKubeError } from './errors.ts';
import { LEASE, type Lease } from './kinds.ts';
import type { KubeClient } from './port.ts';

/**
 * Does some work while nobody else, in no replica, does work of the same key. The work looks first for what an earlier
 * one left. Rejects with BusyError when somebody else is at it for too long, with KubeError, and as the work does.
 */
export type Exclusively = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/** Somebody else does the same work, and has not ended yet. */
export class BusyError extends Error {
  override readonly name = 'BusyError';
}

export interface ExclusiveOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Who works, unique for each start of a process. */
  readonly holder: string;
  /** Whether that start of a process may still work. */
  isAlive(holder: string): Promise<boolean>;
  readonly clock: Clock;
}

/** No work under a key takes longer: a message is in hand for 2 minutes, and a step of a run asks GitLab twice. */
const LONGEST_MS = 3 * 60_000;
/** A replica that died is known to be dead after its Lease, 13 s. */
const PATIENCE_MS = 20_000;
const POLL_MS = 250;

/**
 * By a Lease that is named by the hash of the key, made before the work and deleted after it. One that a killed replica
 * left is taken over when the same work comes again.
 */
export function exclusiveWork(options: ExclusiveOptions): Exclusively {
  const { client, namespace, clock } = options;
  return async (key, signal, work) => {
    const name = `exclusive-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
    const held = await take(options, { namespace, name }, signal);
    try {
      return await work();
    } finally {
      // What is left here is taken over: the work itself is done, or failed with its own word.
      await client.delete(LEASE, { namespace, name }, uidOf(held)).catch(() => undefined);
    }
  };

  async function take(
    { holder, isAlive }: ExclusiveOptions,
    ref: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<Lease> {
    const untilMs = clock.monotonicMs() + PATIENCE_MS;
    for (;;) {
      signal.throwIfAborted();
      const mine = await made(leaseOf(ref, holder, clock.now()), signal);
      if (mine !== undefined) return mine;
      const theirs = await client.get(LEASE, ref, { signal });
      if (theirs === undefined) continue;
      if (!(await isAtWork(theirs, isAlive))) {
        const taken = await replaced({ ...theirs, spec: specOf(holder, clock.now()) }, signal);
        if (taken !== undefined) return taken;
      }
      if (clock.monotonicMs() >= untilMs)
        throw new BusyError(
          `${theirs.spec?.holderIdentity ?? 'another replica'} does the same; Lease ${ref.name}`,
        );
      await sleep(clock, POLL_MS, signal);
    }
  }

  async function isAtWork({ spec }: Lease, isAlive: ExclusiveOptions['isAlive']): Promise<boolean> {
    const since = Date.parse(spec?.acquireTime ?? '');
    if (!(clock.now().getTime() - since < LONGEST_MS)) return false;
    return isAlive(spec?.holderIdentity ?? '');
  }

  async function made(lease: Lease, signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await client.create(LEASE, lease, { signal });
    } catch (error) {
      if (isKubeError(error, 'AlreadyExists')) return undefined;
      throw error;
    }
  }

  /** Of several that want it, the version lets one. */
  async function replaced(lease: Lease, signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await client.replace(LEASE, lease, { signal });
    } catch (error) {
      if (isKubeError(error, 'Conflict', 'NotFound')) return undefined;
      throw error;
    }
  }
}

function leaseOf(
  metadata: { readonly namespace: string; readonly name: string },
  holder: string,
  now: Date,
): Lease {
  return {
    apiVersion: LEASE.apiVersion,
    kind: LEASE.kind,
    metadata: { ...metadata, labels: { [LABELS.managedBy]: MANAGED_BY } },
    spec: specOf(holder, now),
  };
}

const specOf = (holder: string, now: Date): NonNullable<Lease['spec']> => ({
  holderIdentity: holder,
  leaseDurationSeconds: LONGEST_MS / 1000,
  // Leases have microseconds.
  acquireTime: now.toISOString().replace('Z', '000Z'),
});

const uidOf = ({ metadata: { uid } }: Lease) => (uid === undefined ? {} : { uid });
