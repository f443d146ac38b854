import { type Clock, type Random, sleep, systemClock } from './clock.ts';
import type { Lease } from './kinds.ts';
import { createLease, microTime, readLease, replaceLease } from './lease-record.ts';
import { errorFields, type Logger, silentLogger } from './log.ts';
import type { KubeClient } from './port.ts';

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Unique per process: two processes with one identity would both lead. */
  readonly identity: string;
  /**
   * Runs while this process leads; its signal is aborted when the lead is lost or `signal` is aborted. When it
   * returns by itself the lead is given up and sought again.
   */
  lead(signal: AbortSignal): Promise<void>;
  readonly signal: AbortSignal;
  /** Others wait so long after the last renewal they saw; default 15 s. */
  readonly leaseDurationMs?: number;
  /** The leader gives up when it could not renew for so long; below the duration, default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Default 2 s, with jitter. */
  readonly retryPeriodMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
}

/**
 * Leader election on a Lease, with client-go's semantics: whether a leader is gone is measured by this process's own
 * clock from when it last saw the Lease change, never by comparing wall clocks. Runs until `signal` is aborted;
 * then the lead is handed back, so that the next one need not wait. Rejects when `lead` does.
 */
export async function runLeaderElection(options: LeaderElectionOptions): Promise<void> {
  const { client, namespace, name, identity, signal } = options;
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const logger = options.logger ?? silentLogger;
  const leaseDurationMs = options.leaseDurationMs ?? 15_000;
  const renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
  const retryPeriodMs = options.retryPeriodMs ?? 2_000;
  if (renewDeadlineMs >= leaseDurationMs) {
    throw new TypeError('leader election: the renew deadline must be shorter than the lease duration');
  }

  /** The Lease as last seen, and when it was first seen so. */
  let seen: { readonly lease: Lease; readonly atMs: number } | undefined;

  const pause = () => sleep(clock, retryPeriodMs * (1 + 0.2 * random()), signal);

  while (!signal.aborted) {
    if (!(await attempt(() => acquire()))) {
      await pause();
      continue;
    }
    logger.info({ lease: name, identity }, 'leading');
    await holdAndLead();
    logger.info({ lease: name, identity }, 'no longer leading');
  }

  async function attempt(step: () => Promise<boolean>): Promise<boolean> {
    try {
      return await step();
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ lease: name, ...errorFields(error) }, 'the lease could not be reached');
      return false;
    }
  }

  /** True when this process holds the Lease now. Also renews. */
  async function acquire(): Promise<boolean> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(renewDeadlineMs)]);
    const call = { signal: deadline };
    const found = await readLease(client, { namespace, name }, call);
    const now = microTime(clock.now());
    if (found === undefined) {
      return remember(
        await createLease(
          client,
          {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata: { namespace, name },
            spec: { ...held(now), acquireTime: now, leaseTransitions: 0 },
          },
          call,
        ),
      );
    }
    const known = seen;
    const changed = known?.lease.metadata.resourceVersion !== found.metadata.resourceVersion;
    const atMs = known === undefined || changed ? clock.monotonicMs() : known.atMs;
    seen = { lease: found, atMs };
    const { holderIdentity = '', leaseTransitions = 0, acquireTime = now } = found.spec ?? {};
    const mine = holderIdentity === identity;
    const duration = (found.spec?.leaseDurationSeconds ?? leaseDurationMs / 1000) * 1000;
    if (!mine && holderIdentity !== '' && clock.monotonicMs() < atMs + duration) return false;
    const spec = mine
      ? { ...held(now), acquireTime, leaseTransitions }
      : { ...held(now), acquireTime: now, leaseTransitions: leaseTransitions + 1 };
    return remember(await replaceLease(client, found, spec, call));
  }

  function held(now: string): NonNullable<Lease['spec']> {
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      renewTime: now,
    };
  }

  function remember(written: Lease | undefined): boolean {
    if (written !== undefined) seen = { lease: written, atMs: clock.monotonicMs() };
    return written !== undefined;
  }

  async function holdAndLead(): Promise<void> {
    const leading = new AbortController();
    const stopLeading = (why: string) => leading.abort(new Error(why));
    const outer = () => stopLeading('the process ends');
    signal.addEventListener('abort', outer, { once: true });
    if (signal.aborted) outer();
    const work = options.lead(leading.signal).finally(() => stopLeading('the work ended'));
    try {
      await renewUntil(leading.signal, stopLeading);
    } finally {
      signal.removeEventListener('abort', outer);
      // Only when the work has really stopped may anybody else begin.
      await work.finally(() => release());
    }
  }

  /** Returns when the lead is lost or given up. */
  async function renewUntil(leading: AbortSignal, stopLeading: (why: string) => void): Promise<void> {
    // Measured from before the request: the server's and the others' clocks start no earlier.
    let renewedAt = clock.monotonicMs();
    const nothing: () => void = () => undefined;
    const armed = { cancel: nothing };
    const arm = () => {
      armed.cancel();
      armed.cancel = clock.after(renewedAt + renewDeadlineMs - clock.monotonicMs(), () =>
        stopLeading(`the lease ${name} could not be renewed for ${renewDeadlineMs} ms`),
      );
    };
    arm();
    try {
      while (!leading.aborted) {
        await sleep(clock, retryPeriodMs, leading);
        if (leading.aborted) return;
        const startedAt = clock.monotonicMs();
        if (await attempt(acquire)) {
          renewedAt = startedAt;
          arm();
        } else if (seen !== undefined && seen.lease.spec?.holderIdentity !== identity) {
          stopLeading(`the lease ${name} is held by ${seen.lease.spec?.holderIdentity || 'nobody'}`);
        }
      }
    } finally {
      armed.cancel();
    }
  }

  /** Gives the Lease back when it is still ours; best effort. */
  async function release(): Promise<void> {
    const held = seen?.lease;
    if (held?.spec?.holderIdentity !== identity) return;
    const spec = {
      ...held.spec,
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: microTime(clock.now()),
    };
    try {
      await replaceLease(client, held, spec, { signal: AbortSignal.timeout(2_000) });
    } catch (error) {
      logger.warn({ lease: name, ...errorFields(error) }, 'the lease could not be given back');
    }
  }
}
