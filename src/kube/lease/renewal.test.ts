import { describe, expect, it } from 'vitest';
import { ManualClock } from '../clock.ts';
import { KubeError } from '../errors.ts';
import { silentLogger } from '../log.ts';
import type { CallOptions, KubeClient, Patch } from '../port.ts';
import { keepRenewing } from './renewal.ts';
import { attemptMs, checkTiming, LEASE_TIMING } from './timing.ts';

/** How the API server meets a renewal, and after how long it answers. */
interface Answer {
  readonly kind?: 'Made' | 'Unreached' | 'NotOurs' | 'Refused';
  readonly afterMs?: number;
}

/** The next renewals go as `script` says, all later ones as `rest`. */
function world({ script = [] as Answer[], rest = {} as Answer } = {}) {
  const clock = new ManualClock();
  const sentAtMs: number[] = [];
  const bodies: unknown[] = [];
  const client = {
    async patch(_: unknown, __: unknown, { body }: Patch, call?: CallOptions) {
      sentAtMs.push(clock.monotonicMs());
      bodies.push(body);
      const { kind = 'Made', afterMs = 0 } = script.shift() ?? rest;
      await new Promise<void>((resolve, reject) => {
        const cancel = clock.after(kind === 'Unreached' ? Number.MAX_SAFE_INTEGER : afterMs, resolve);
        call?.signal?.addEventListener('abort', () => {
          cancel();
          reject(call.signal?.reason);
        });
      });
      const reason = ({ NotOurs: 'Invalid', Refused: 'TooManyRequests' } as const)[
        kind as 'NotOurs' | 'Refused'
      ];
      if (reason !== undefined) throw new KubeError({ where: 'lease', message: kind, reason });
    },
  } as unknown as KubeClient; // the method that a renewal uses
  const held = { namespace: 'ns', name: 'replica-a', holder: 'a', incarnation: 3 };
  const renewal = keepRenewing({
    ...{ client, held, takenAtMs: 0, timing: LEASE_TIMING, clock, logger: silentLogger },
  });
  return { clock, renewal, sentAtMs, bodies };
}

describe('a lease', () => {
  it('is renewed every 2 s, by a write that fails when somebody else holds it', async () => {
    const { clock, sentAtMs, renewal, bodies } = world();
    await clock.advance(10_500);
    expect(sentAtMs).toEqual([2_000, 4_000, 6_000, 8_000, 10_000]);
    expect(renewal.ageMs()).toBe(500);
    expect(bodies[0]).toEqual([
      { op: 'test', path: '/spec/holderIdentity', value: 'a' },
      { op: 'test', path: '/spec/leaseTransitions', value: 3 },
      { op: 'add', path: '/spec/renewTime', value: '2026-01-01T00:00:02.000000Z' },
    ]);
  });

  it('is kept on an API server that takes 7 s for each answer', async () => {
    const { clock, renewal } = world({ rest: { afterMs: 7_000 } });
    await clock.advance(120_000);
    expect(renewal.lost.aborted).toBe(false);
    expect(renewal.ageMs()).toBeGreaterThanOrEqual(7_000);
    await renewal.stop();
  });

  it('is kept when renewals hang, or are refused: the next one is sent all the same', async () => {
    const { clock, sentAtMs, renewal } = world({
      script: [{ kind: 'Unreached' }, { kind: 'Refused' }, { kind: 'Unreached' }],
    });
    await clock.advance(60_000);
    expect(sentAtMs.slice(0, 4)).toEqual([2_000, 4_000, 6_000, 8_000]);
    expect(renewal.lost.aborted).toBe(false);
  });

  it('is as old as the renewal that was sent last, whatever answers come afterwards', async () => {
    const { clock, renewal } = world({ script: [{ afterMs: 5_000 }] });
    await clock.advance(7_500);
    expect(renewal.ageMs()).toBe(1_500);
  });

  it('is lost before the others may believe its holder dead, and not earlier', async () => {
    const { clock, renewal } = world({ rest: { kind: 'Unreached' } });
    await clock.advance(LEASE_TIMING.renewDeadlineMs - 1);
    expect(renewal.lost.aborted).toBe(false);
    await clock.advance(1);
    expect(renewal.lost.aborted).toBe(true);
    expect(String(renewal.lost.reason)).toContain('ns/replica-a: not renewed for 10000 ms');
  });

  it('is lost to a process that was held up for too long before any timer tells it', async () => {
    const { clock, renewal } = world();
    clock.monotonicMs = () => LEASE_TIMING.renewDeadlineMs;
    renewal.ageMs();
    expect(renewal.lost.aborted).toBe(true);
  });

  it('is lost at once when somebody else holds it', async () => {
    const { clock, renewal, sentAtMs } = world({ rest: { kind: 'NotOurs' } });
    await clock.advance(60_000);
    expect(String(renewal.lost.reason)).toContain('another process took it');
    expect(sentAtMs).toEqual([2_000]);
  });

  it('is renewed no more after the stop', async () => {
    const { clock, renewal, sentAtMs } = world({ rest: { kind: 'Unreached' } });
    await clock.advance(4_000);
    await renewal.stop();
    await clock.advance(60_000);
    expect(sentAtMs).toEqual([2_000, 4_000]);
    expect([renewal.lost.aborted, clock.pending]).toEqual([false, 0]);
  });
});

describe('the timing of leases', () => {
  it('leaves a second try its time, and gives the last one all of it', () => {
    expect([8_000, 5_000, 4_000, 1_500, 0].map((left) => attemptMs(left, LEASE_TIMING))).toEqual([
      4_000, 2_500, 4_000, 1_500, 1,
    ]);
  });

  it('is refused when two could hold one lease', () => {
    expect(() => checkTiming({ leaseDurationMs: 10_000, renewDeadlineMs: 10_000, renewMs: 1_000 })).toThrow(
      'need renewal (1000 ms) < deadline (10000 ms) < duration (10000 ms)',
    );
    checkTiming(LEASE_TIMING);
  });
});
