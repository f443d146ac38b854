import { type Clock, sleep } from '../clock.ts';
import { errorFields, type Logger } from '../log.ts';
import type { KubeClient } from '../port.ts';
import { type HeldLease, microTime, patchHeld } from './record.ts';
import type { LeaseTiming } from './timing.ts';

export interface RenewalOptions {
  readonly client: KubeClient;
  /** As it was just taken. */
  readonly held: HeldLease;
  /** `clock.monotonicMs()` before the request that took it was sent. */
  readonly takenAtMs: number;
  readonly timing: LeaseTiming;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keeps a Lease that this process holds. */
export interface Renewal {
  /** Aborted when the others may believe the holder dead, or somebody else has the Lease. Final. */
  readonly lost: AbortSignal;
  /** Milliseconds since the newest renewal that is known to have been made was sent. Notices a deadline that has passed. */
  ageMs(): number;
  /** Ends the renewals; the Lease stays as it is. Resolves when no request is open. */
  stop(): Promise<void>;
}

/**
 * Renews until `stop`, or until the Lease is lost. One renewal is sent each `renewMs`, also while earlier ones wait for
 * their answer: on an API server with too much to do, answers may take as long as the deadline less `renewMs`.
 * Time counts from before a request was sent: the others' clocks start no earlier than the API server had it.
 */
export function keepRenewing(options: RenewalOptions): Renewal {
  const { client, held, timing, clock, logger } = options;
  const what = `lease ${held.namespace}/${held.name}`;
  const stopping = new AbortController();
  const lost = new AbortController();
  const ended = AbortSignal.any([stopping.signal, lost.signal]);
  let renewedAtMs = options.takenAtMs;
  let disarm = clock.after(leftMs(), ageMs);
  const open = new Set<Promise<void>>();
  const running = run();

  async function run(): Promise<void> {
    while (!ended.aborted) {
      await sleep(clock, timing.renewMs, ended);
      ageMs();
      if (ended.aborted) break;
      const sent = renew(clock.monotonicMs()).finally(() => open.delete(sent));
      open.add(sent);
    }
    disarm();
    await Promise.all(open);
  }

  function leftMs(): number {
    return renewedAtMs + timing.renewDeadlineMs - clock.monotonicMs();
  }

  function ageMs(): number {
    if (leftMs() <= 0) lose(`not renewed for ${timing.renewDeadlineMs} ms`);
    return clock.monotonicMs() - renewedAtMs;
  }

  function lose(why: string): void {
    lost.abort(new Error(`${what}: ${why}`));
  }

  /** Each renewal waits for as long as it is of any use. */
  async function renew(sentAtMs: number): Promise<void> {
    const limit = new AbortController();
    const cancel = clock.after(timing.renewDeadlineMs, () => limit.abort(new Error(`${what}: no answer`)));
    const signal = AbortSignal.any([ended, limit.signal]);
    try {
      const renewTime = microTime(clock.now());
      if (!(await patchHeld(client, held, { renewTime }, { signal })))
        return lose('another process took it, or it was deleted');
      if (ended.aborted || sentAtMs <= renewedAtMs) return;
      renewedAtMs = sentAtMs;
      disarm();
      disarm = clock.after(leftMs(), ageMs);
    } catch (error) {
      if (!ended.aborted)
        logger.warn({ lease: held.name, ...errorFields(error) }, 'the lease was not renewed');
    } finally {
      cancel();
    }
  }

  return {
    lost: lost.signal,
    ageMs,
    async stop() {
      stopping.abort(new Error('the holder stops'));
      await running;
    },
  };
}
