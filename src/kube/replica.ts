import { GROUP } from '../crds/meta.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { createInformer } from './informer.ts';
import { LEASE, type Lease } from './kinds.ts';
import { createLease, microTime, readLease, replaceLease } from './lease-record.ts';
import { errorFields, type Logger, silentLogger } from './log.ts';
import type { KubeClient } from './port.ts';
import type { Transport } from './transport.ts';

/** On every replica's Lease; its value is the replica. */
export const REPLICA_LABEL = `${GROUP}/replica`;

export interface ReplicaLeaseOptions {
  readonly client: KubeClient;
  readonly transport: Transport;
  readonly namespace: string;
  /** Name of this replica, a DNS label: the pod's name. Two living processes must not share it. */
  readonly replica: string;
  /** A replica whose Lease was not renewed for so long is dead; default 10 s. */
  readonly leaseDurationMs?: number;
  /** Renewed this often; default 3 s. */
  readonly renewMs?: number;
  /** A replica that could not renew for so long gives up before the others take over; default 7 s. */
  readonly renewDeadlineMs?: number;
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
  /**
   * Whether that replica (that start of it, when given) may still act. Errs on the side of alive: one that was never
   * seen before is given the whole lease duration, and time without contact to the API server does not count.
   */
  isAlive(replica: string, incarnation?: number): boolean;
  /** Called when a replica's answer may have changed: one came, went, was given up or
   * expired (noticed within `renewMs`). Returns the function that ends it. */
  onChange(handler: () => void): () => void;
  /** Ends the renewals and says so in the Lease, so that the others need not wait. */
  stop(): Promise<void>;
}

/** Leases of replicas that died are deleted after this. */
const FORGET_MS = 24 * 3_600_000;
/**
 * A new Lease counts its incarnations from the seconds since this moment, not from 0: one that was deleted and is
 * made again must not repeat numbers that stand as holder in old runs. int32 lasts until 2094.
 */
const INCARNATION_EPOCH_MS = Date.UTC(2026, 0, 1);

/** Takes the Lease of this replica, as a new incarnation, and keeps it. Throws KubeError when it cannot be had. */
export async function holdReplicaLease(options: ReplicaLeaseOptions): Promise<ReplicaLease> {
  const { client, namespace, replica } = options;
  const clock = options.clock ?? systemClock;
  const logger = options.logger ?? silentLogger;
  const leaseDurationMs = options.leaseDurationMs ?? 10_000;
  const renewMs = options.renewMs ?? 3_000;
  const renewDeadlineMs = options.renewDeadlineMs ?? 7_000;
  if (!(renewMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs)) {
    throw new TypeError('replica lease: need renew < renew deadline < lease duration');
  }
  const name = `replica-${replica}`;
  const stopping = new AbortController();
  const lost = new AbortController();
  const handlers = new Set<() => void>();

  let startedAt = clock.monotonicMs();
  let mine = await take();
  const incarnation = mine.spec?.leaseTransitions ?? 0;

  /** When each replica's Lease was last seen to change. */
  const observed = new Map<string, { readonly lease: Lease; readonly atMs: number }>();
  const informer = createInformer({
    transport: options.transport,
    kind: LEASE,
    namespace,
    labelSelector: REPLICA_LABEL,
    clock,
    logger,
  });
  informer.subscribe((change) => {
    const id = change.object.metadata.labels?.[REPLICA_LABEL];
    if (id === undefined || change.type === 'Resync') return;
    const before = observed.get(id)?.lease.spec;
    if (change.type === 'Deleted') observed.delete(id);
    else observed.set(id, { lease: change.object, atMs: clock.monotonicMs() });
    const after = observed.get(id)?.lease.spec;
    const news =
      before?.holderIdentity !== after?.holderIdentity ||
      before?.leaseTransitions !== after?.leaseTransitions;
    if (news) tell();
  });
  informer.start();
  let aliveBefore = '';
  const renewing = renew();
  try {
    await informer.waitForSync(lost.signal);
  } catch (error) {
    stopping.abort(error);
    await Promise.all([renewing, informer.stop()]);
    throw error;
  }

  function tell(): void {
    for (const handler of handlers) {
      try {
        handler();
      } catch (error) {
        logger.error(errorFields(error), 'a handler of replica changes failed');
      }
    }
  }

  /** A new incarnation: created, or the present Lease with its count raised. */
  async function take(): Promise<Lease> {
    for (let attempt = 0; attempt < 5; attempt++) {
      startedAt = clock.monotonicMs();
      const found = await readLease(client, { namespace, name }, {});
      const taken =
        found === undefined
          ? await createLease(client, aLease(firstIncarnation()), {})
          : await replaceLease(client, found, held((found.spec?.leaseTransitions ?? 0) + 1), {});
      if (taken !== undefined) return taken;
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
      spec: held(transitions),
    };
  }

  function held(transitions: number): NonNullable<Lease['spec']> {
    const now = microTime(clock.now());
    return {
      holderIdentity: replica,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: transitions,
    };
  }

  async function renew(): Promise<void> {
    let cancelDeadline = armDeadline();
    while (!stopping.signal.aborted && !lost.signal.aborted) {
      await sleep(clock, renewMs, AbortSignal.any([stopping.signal, lost.signal]));
      if (stopping.signal.aborted || lost.signal.aborted) break;
      tellOfDeaths();
      const began = clock.monotonicMs();
      if (await renewOnce()) {
        startedAt = began;
        cancelDeadline();
        cancelDeadline = armDeadline();
        await forgetTheLongDead();
      }
    }
    cancelDeadline();
  }

  /** A Lease that expires makes no event. */
  function tellOfDeaths(): void {
    const alive = [...observed.keys()].filter((id) => isAlive(id)).join(' ');
    if (alive !== aliveBefore) tell();
    aliveBefore = alive;
  }

  function armDeadline(): () => void {
    return clock.after(startedAt + renewDeadlineMs - clock.monotonicMs(), () =>
      lost.abort(new Error(`replica lease ${name}: not renewed for ${renewDeadlineMs} ms`)),
    );
  }

  async function renewOnce(): Promise<boolean> {
    // A renewal that hangs must leave time for a second one.
    const call = { signal: AbortSignal.any([stopping.signal, lost.signal, AbortSignal.timeout(renewMs)]) };
    try {
      const spec = { ...mine.spec, renewTime: microTime(clock.now()) };
      const written = await replaceLease(client, mine, spec, call);
      if (written !== undefined) {
        mine = written;
        return true;
      }
      // Somebody wrote to it: a second process of this name, a label put on by hand, or our own write whose answer was lost.
      const found = await readLease(client, { namespace, name }, call);
      if (found?.spec?.leaseTransitions !== incarnation || found.spec.holderIdentity !== replica) {
        lost.abort(new Error(`replica lease ${name}: another process took it, or it was deleted`));
        return false;
      }
      mine = found;
      const again = await replaceLease(
        client,
        mine,
        { ...mine.spec, renewTime: microTime(clock.now()) },
        call,
      );
      if (again !== undefined) mine = again;
      return again !== undefined;
    } catch (error) {
      if (!stopping.signal.aborted)
        logger.warn({ lease: name, ...errorFields(error) }, 'the lease was not renewed');
      return false;
    }
  }

  function isAlive(other: string, otherIncarnation?: number): boolean {
    if (other === replica) {
      return !lost.signal.aborted && (otherIncarnation === undefined || otherIncarnation === incarnation);
    }
    const known = observed.get(other);
    if (known === undefined || known.lease.spec?.holderIdentity !== other) return false;
    if (otherIncarnation !== undefined && known.lease.spec.leaseTransitions !== otherIncarnation)
      return false;
    const duration = (known.lease.spec.leaseDurationSeconds ?? leaseDurationMs / 1000) * 1000;
    // Silence counts only as far as the API server was heard: our own lost connection kills nobody.
    return clock.monotonicMs() - informer.stalenessMs() - known.atMs <= duration;
  }

  async function forgetTheLongDead(): Promise<void> {
    for (const [id, { lease, atMs }] of observed) {
      if (id === replica || clock.monotonicMs() - informer.stalenessMs() - atMs < FORGET_MS) continue;
      const { name: dead = '', uid = '', resourceVersion = '' } = lease.metadata;
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
    isAlive,
    onChange(handler) {
      handlers.add(handler);
      return () => {
        handlers.delete(handler);
      };
    },
    async stop() {
      stopping.abort(new Error('the replica stops'));
      await Promise.all([renewing, informer.stop()]);
      if (lost.signal.aborted) return;
      lost.abort(new Error('the replica stopped'));
      try {
        await replaceLease(
          client,
          mine,
          { ...mine.spec, holderIdentity: '' },
          { signal: AbortSignal.timeout(2_000) },
        );
      } catch (error) {
        logger.warn({ lease: name, ...errorFields(error) }, 'the lease was not given back');
      }
    },
  };
}
