import { type Clock, type Random, sleep, systemClock } from '../clock.ts';
import type { Lease } from '../kinds.ts';
import { errorFields, type Logger, silentLogger } from '../log.ts';
import type { CallOptions, KubeClient } from '../port.ts';
import { createLease, microTime, patchHeld, readLease, replaceLease } from './record.ts';
import { attemptMs, checkTiming, LEASE_TIMING, type LeaseTiming, pauseMs } from './timing.ts';

export interface LeaderElectionOptions extends Partial<LeaseTiming> {
  /** Should be used for Leases only: no other call's timeout may take its connections along. */
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
  const leaseDurationMs = options.leaseDurationMs ?? LEASE_TIMING.leaseDurationMs;
  const renewDeadlineMs = options.renewDeadlineMs ?? LEASE_TIMING.renewDeadlineMs;
  const renewMs = options.renewMs ?? LEASE_TIMING.renewMs;
  const timing: LeaseTiming = { leaseDurationMs, renewDeadlineMs, renewMs };
  checkTiming(timing);

  /** The Lease as last seen, and when it was first seen so. */
  let seen: { readonly lease: Lease; readonly atMs: number } | undefined;

  const pause = () => sleep(clock, renewMs * (1 + 0.2 * random()), signal);

  while (!signal.aborted) {
    const sentAtMs = clock.monotonicMs();
    if (!(await attempt(renewDeadlineMs, acquire))) {
      await pause();
      continue;
    }
    logger.info({ lease: name, identity }, 'leading');
    await holdAndLead(sentAtMs);
    logger.info({ lease: name, identity }, 'no longer leading');
  }

  async function attempt(limitMs: number, step: (call: CallOptions) => Promise<boolean>): Promise<boolean> {
    const limit = new AbortController();
    const disarm = clock.after(limitMs, () => limit.abort(new Error(`no answer within ${limitMs} ms`)));
    try {
      return await step({ signal: AbortSignal.any([signal, limit.signal]) });
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ lease: name, ...errorFields(error) }, 'the lease could not be reached');
      return false;
    } finally {
      disarm();
    }
  }

  /** One request when nobody has written to the Lease since we did. */
  async function renew(call: CallOptions): Promise<boolean> {
    const lease = seen?.lease;
    if (lease?.spec?.holderIdentity === identity) {
      const spec = { ...lease.spec, ...held(microTime(clock.now())) };
      if (remember(await replaceLease(client, lease, spec, call))) return true;
    }
    return acquire(call);
  }

  /** True when this process holds the Lease now. Also renews. */
  async function acquire(call: CallOptions): Promise<boolean> {
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

  async function holdAndLead(acquiredAtMs: number): Promise<void> {
    const leading = new AbortController();
    const stopLeading = (why: string) => leading.abort(new Error(why));
    const outer = () => stopLeading('the process ends');
    signal.addEventListener('abort', outer, { once: true });
    if (signal.aborted) outer();
    const work = options.lead(leading.signal).finally(() => stopLeading('the work ended'));
    try {
      await renewUntil(acquiredAtMs, leading.signal, stopLeading);
    } finally {
      signal.removeEventListener('abort', outer);
      // Only when the work has really stopped may anybody else begin.
      await work.finally(() => release());
    }
  }

  /** Returns when the lead is lost or given up. */
  async function renewUntil(
    acquiredAtMs: number,
    leading: AbortSignal,
    stopLeading: (why: string) => void,
  ): Promise<void> {
    // Measured from before the request: the server's and the others' clocks start no earlier.
    let renewedAt = acquiredAtMs;
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
      for (let pause = renewMs; !leading.aborted; ) {
        await sleep(clock, pause, leading);
        if (leading.aborted) return;
        const startedAt = clock.monotonicMs();
        const renewed = await attempt(attemptMs(renewedAt + renewDeadlineMs - startedAt, timing), renew);
        pause = pauseMs(renewed, clock.monotonicMs() - startedAt, timing);
        if (renewed) {
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

  /** Gives the Lease back when it is still ours, whichever of our renewals was the last; best effort. */
  async function release(): Promise<void> {
    const { holderIdentity, leaseTransitions: incarnation = 0 } = seen?.lease.spec ?? {};
    if (holderIdentity !== identity) return;
    const changes = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) };
    const call = { signal: AbortSignal.timeout(2_000) };
    try {
      await patchHeld(client, { namespace, name, holder: identity, incarnation }, changes, call);
    } catch (error) {
      logger.warn({ lease: name, ...errorFields(error) }, 'the lease could not be given back');
    }
  }
}
