export interface LeaseTiming {
  /** A holder whose Lease was not renewed for so long is dead to the others. */
  readonly leaseDurationMs: number;
  /** A holder that could not renew for so long gives up, before the others believe it dead. */
  readonly renewDeadlineMs: number;
  /** From the beginning of one renewal to the next. */
  readonly renewMs: number;
}

/**
 * Failover takes at the most the duration, one renewal (until the others have heard the API server again after the
 * end) and a second (until they look): 16 s, which leaves 4 of the promised 20 to take over. Three seconds are left
 * to end what acts under a Lease that is given up.
 */
export const LEASE_TIMING: LeaseTiming = { leaseDurationMs: 13_000, renewDeadlineMs: 10_000, renewMs: 2_000 };

/** Throws for timing that would let two hold one Lease. */
export function checkTiming({ leaseDurationMs, renewDeadlineMs, renewMs }: LeaseTiming): void {
  if (renewMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs) return;
  throw new TypeError(
    `lease: need renewal (${renewMs} ms) < deadline (${renewDeadlineMs} ms) < duration (${leaseDurationMs} ms)`,
  );
}

/** How long one try may take, of tries one after the other: half of what is left, so that one that hangs leaves time for another; all of it when that is the last one. */
export function attemptMs(leftMs: number, { renewMs }: LeaseTiming): number {
  return leftMs > 2 * renewMs ? leftMs / 2 : Math.max(1, leftMs);
}

/** A failed renewal is tried again soon; one that took long is not followed at once. */
export function pauseMs(renewed: boolean, tookMs: number, { renewMs }: LeaseTiming): number {
  return renewed ? Math.max(renewMs / 4, renewMs - tookMs) : renewMs / 4;
}
