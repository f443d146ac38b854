import { type Clock, systemClock } from '../clock.ts';
import { createInformer } from '../informer.ts';
import { LEASE, type Lease } from '../kinds.ts';
import { errorFields, type Logger, silentLogger } from '../log.ts';
import type { KubeClient } from '../port.ts';
import type { Transport } from '../transport.ts';
import { observeOthers } from './others.ts';
import { createLease, microTime, patchHeld, REPLICA_LABEL, readLease, replaceLease } from './record.ts';
import { keepRenewing } from './renewal.ts';
import { checkTiming, LEASE_TIMING, type LeaseTiming } from './timing.ts';

export interface ReplicaLeaseOptions extends Partial<LeaseTiming> {
  /** Both should be used for Leases only: no other call's timeout may take their connections along. */
  readonly client: KubeClient;
  readonly transport: Transport;
  readonly namespace: string;
  /** Name of this replica, a DNS label: the pod's name. Two living processes must not share it. */
  readonly replica: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/** A replica's own sign of life, and what it knows of the others'. */
export interface ReplicaLease {
  readonly replica: string;
  /** Greater at each start of the same replica, also after its Lease was deleted meanwhile. */
  readonly incarnation: number;
  /** Aborted when the others may believe this replica dead: stop acting at once. Final: start a new process. */
  readonly lost: AbortSignal;
  /** Milliseconds since the newest renewal that is known to have been made was sent; some `renewMs` when all is well. */
  ageMs(): number;
  /** Renewals take so long that it is not far from giving up: whoever has too much to do should take no more. */
  isLate(): boolean;
  /**
   * Whether that replica (that start of it, when given) may still act. Errs on the side of alive: one that was never
   * seen before is given the whole lease duration, and time without contact to the API server does not count.
   */
  isAlive(replica: string, incarnation?: number): boolean;
  /**
   * Whether what that start of a replica holds may be taken over by this one: it is dead, the API server has
   * confirmed that, and the replica has not just been started again, when it takes up its own by itself. Throws
   * KubeError.
   */
  mayTakeOver(replica: string, incarnation: number): Promise<boolean>;
  /** Called when a replica's answer may have changed: one came, went, was given up or
   * expired (noticed within a second). Returns the function that ends it. */
  onChange(handler: () => void): () => void;
  /** Ends the renewals and says so in the Lease, so that the others need not wait. */
  stop(): Promise<void>;
}

/** Leases of replicas that died are deleted after this. */
const FORGET_MS = 24 * 3_600_000;
/** How often is looked for those. */
const TIDY_MS = 600_000;
/**
 * A new Lease counts its incarnations from the seconds since this moment, not from 0: one that was deleted and is
 * made again must not repeat numbers that stand as holder in old runs. int32 lasts until 2094.
 */
const INCARNATION_EPOCH_MS = Date.UTC(2026, 0, 1);

/** Takes the Lease of this replica, as a new incarnation, and keeps it. Throws KubeError when it cannot be had. */
export async function holdReplicaLease(options: ReplicaLeaseOptions): Promise<ReplicaLease> {
  const { client, transport, namespace, replica } = options;
  const clock = options.clock ?? systemClock;
  const logger = options.logger ?? silentLogger;
  const timing: LeaseTiming = {
    leaseDurationMs: options.leaseDurationMs ?? LEASE_TIMING.leaseDurationMs,
    renewDeadlineMs: options.renewDeadlineMs ?? LEASE_TIMING.renewDeadlineMs,
    renewMs: options.renewMs ?? LEASE_TIMING.renewMs,
  };
  checkTiming(timing);
  const name = nameOf(replica);
  const stopping = new AbortController();

  const { taken, takenAtMs } = await take();
  const incarnation = taken.spec?.leaseTransitions ?? 0;
  const held = { namespace, name, holder: replica, incarnation };
  const renewal = keepRenewing({ client, held, takenAtMs, timing, clock, logger });
  /** Also after `stop`, which gives the Lease back. */
  const lost = new AbortController();
  renewal.lost.addEventListener('abort', () => lost.abort(renewal.lost.reason), { once: true });
  const ended = AbortSignal.any([stopping.signal, lost.signal]);

  const informer = createInformer({
    ...{ transport, kind: LEASE, namespace, clock, logger },
    labelSelector: REPLICA_LABEL,
  });
  const others = observeOthers({
    ...{ informer, clock, logger, self: replica, leaseDurationMs: timing.leaseDurationMs },
    read: (other) => readLease(client, { namespace, name: nameOf(other) }, { signal: ended }),
  });
  informer.start();
  try {
    await informer.waitForSync(lost.signal);
  } catch (error) {
    stopping.abort(error);
    await Promise.all([renewal.stop(), informer.stop()]);
    throw error;
  }
  const watching = others.watch(ended);
  let stopTidying = clock.after(TIDY_MS, tidy);

  /** A new incarnation: created, or the present Lease with its count raised. */
  async function take(): Promise<{ readonly taken: Lease; readonly takenAtMs: number }> {
    for (let attempt = 0; attempt < 5; attempt++) {
      const takenAtMs = clock.monotonicMs();
      const found = await readLease(client, { namespace, name }, {});
      const taken =
        found === undefined
          ? await createLease(client, aLease(firstIncarnation()), {})
          : await replaceLease(client, found, specOf((found.spec?.leaseTransitions ?? 0) + 1), {});
      if (taken !== undefined) return { taken, takenAtMs };
    }
    throw new Error(
      `replica lease ${namespace}/${name}: other processes take it all the time; give each its own name`,
    );
  }

  function firstIncarnation(): number {
    return Math.max(1, Math.floor((clock.now().getTime() - INCARNATION_EPOCH_MS) / 1000));
  }

  function aLease(transitions: number): Lease {
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name, labels: { [REPLICA_LABEL]: replica } },
      spec: specOf(transitions),
    };
  }

  function specOf(transitions: number): NonNullable<Lease['spec']> {
    const now = microTime(clock.now());
    return {
      holderIdentity: replica,
      leaseDurationSeconds: Math.ceil(timing.leaseDurationMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: transitions,
    };
  }

  function isLost(): boolean {
    // A process that was held up finds out before the timer tells it.
    renewal.ageMs();
    return lost.signal.aborted;
  }

  function isAlive(other: string, otherIncarnation?: number): boolean {
    if (other !== replica) return others.isAlive(other, otherIncarnation);
    return !isLost() && (otherIncarnation === undefined || otherIncarnation === incarnation);
  }

  async function mayTakeOver(other: string, otherIncarnation: number): Promise<boolean> {
    if (isLost()) return false;
    if (other === replica) return otherIncarnation !== incarnation;
    return (await others.isGone(other, otherIncarnation)) && !isLost();
  }

  function tidy(): void {
    if (ended.aborted) return;
    void forgetTheLongDead();
    stopTidying = clock.after(TIDY_MS, tidy);
  }

  async function forgetTheLongDead(): Promise<void> {
    for (const { metadata } of others.silentFor(FORGET_MS)) {
      const { name: dead = '', uid = '', resourceVersion = '' } = metadata;
      try {
        await client.delete(LEASE, { namespace, name: dead }, { uid, resourceVersion });
      } catch (error) {
        logger.debug({ lease: dead, ...errorFields(error) }, 'the lease of a dead replica was not deleted');
      }
    }
  }

  return {
    replica,
    incarnation,
    lost: lost.signal,
    ageMs: () => renewal.ageMs(),
    isLate: () => renewal.ageMs() > timing.renewDeadlineMs / 2,
    isAlive,
    mayTakeOver,
    onChange: (handler) => others.onChange(handler),
    async stop() {
      stopping.abort(new Error('the replica stops'));
      stopTidying();
      await Promise.all([renewal.stop(), watching, informer.stop()]);
      if (lost.signal.aborted) return;
      lost.abort(new Error('the replica stopped'));
      const call = { signal: AbortSignal.timeout(2_000) };
      try {
        await patchHeld(client, held, { holderIdentity: '' }, call);
      } catch (error) {
        logger.warn({ lease: name, ...errorFields(error) }, 'the lease was not given back');
      }
    },
  };
}

const nameOf = (replica: string): string => `replica-${replica}`;
