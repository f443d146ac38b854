import { describe, expect, it } from 'vitest';
import { ManualClock } from '../clock.ts';
import type { ChangeHandler, Informer } from '../informer.ts';
import type { Lease } from '../kinds.ts';
import { silentLogger } from '../log.ts';
import { observeOthers } from './others.ts';
import { REPLICA_LABEL } from './record.ts';

const DURATION_MS = 13_000;

/** Replica `b` in the API server, and what this replica's watch has heard of it. */
function world() {
  const clock = new ManualClock();
  const handlers: ChangeHandler<Lease>[] = [];
  let version = 0;
  let stored: Lease | undefined;
  let heardAtMs = 0;
  let reads = 0;
  const watch = {
    subscribe: (handler: ChangeHandler<Lease>) => handlers.push(handler),
    stalenessMs: () => clock.monotonicMs() - heardAtMs,
  } as unknown as Informer<Lease>; // what is used of it
  const others = observeOthers({
    ...{ informer: watch, self: 'a', leaseDurationMs: DURATION_MS, clock, logger: silentLogger },
    async read() {
      reads += 1;
      return stored;
    },
  });
  return {
    others,
    clock,
    reads: () => reads,
    /** The watch is well: it heard of nothing new. */
    hear: () => {
      heardAtMs = clock.monotonicMs();
    },
    write: (incarnation: number, { heard = true, holder = 'b' } = {}) => {
      version += 1;
      stored = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'replica-b', resourceVersion: String(version), labels: { [REPLICA_LABEL]: 'b' } },
        spec: { holderIdentity: holder, leaseTransitions: incarnation, leaseDurationSeconds: 13 },
      };
      if (!heard) return;
      heardAtMs = clock.monotonicMs();
      for (const handler of handlers) void handler({ type: 'Added', key: 'replica-b', object: stored });
    },
    remove: () => {
      stored = undefined;
    },
  };
}

describe('another replica', () => {
  it('that renews is not gone, and nobody asks the API server about it', async () => {
    const { others, write, reads } = world();
    write(1);
    expect(await others.isGone('b', 1)).toBe(false);
    expect(reads()).toBe(0);
  });

  it('that is silent for its lease’s duration is gone when the API server confirms it, once for all its runs', async () => {
    const { others, write, clock, hear, reads } = world();
    write(1);
    await clock.advance(DURATION_MS + 1);
    hear();
    expect(await Promise.all(Array.from({ length: 50 }, () => others.isGone('b', 1)))).toEqual(
      Array(50).fill(true),
    );
    expect(reads()).toBe(1);
  });

  it('whose renewals the watch has not brought yet is not gone', async () => {
    const { others, write, clock, hear } = world();
    write(1);
    await clock.advance(DURATION_MS - 1_000);
    write(1, { heard: false });
    await clock.advance(1_001);
    hear();
    expect(others.isAlive('b', 1)).toBe(false);
    expect(await others.isGone('b', 1)).toBe(false);
    // Believed for as long as any other renewal.
    expect(others.isAlive('b', 1)).toBe(true);
  });

  it('is not gone while our own connection is: silence counts only as far as the API server was heard', async () => {
    const { others, write, clock } = world();
    write(1);
    await clock.advance(10 * DURATION_MS);
    expect(await others.isGone('b', 1)).toBe(false);
  });

  it('that was started again takes up its own runs first; later they are anybody’s', async () => {
    const { others, write, clock } = world();
    write(1);
    write(2);
    expect(others.isAlive('b', 1)).toBe(false);
    expect(await others.isGone('b', 1)).toBe(false);
    await clock.advance(9_000);
    write(2);
    expect(await others.isGone('b', 1)).toBe(false);
    await clock.advance(2_000);
    write(2);
    expect(await others.isGone('b', 1)).toBe(true);
    expect(await others.isGone('b', 2)).toBe(false);
  });

  it('that gave its lease back, or has none, is gone at once', async () => {
    const { others, write, remove } = world();
    write(1);
    write(1, { holder: '' });
    expect(await others.isGone('b', 1)).toBe(true);
    remove();
    expect(await others.isGone('c', 1)).toBe(true);
  });

  it('that is silent for very long is told, and this replica never', async () => {
    const { others, write, clock, hear } = world();
    write(1);
    await clock.advance(5_000);
    hear();
    expect(others.silentFor(5_000).map(({ metadata }) => metadata.name)).toEqual(['replica-b']);
    expect(others.silentFor(5_001)).toEqual([]);
  });

  it('that expires without a word is told within a second', async () => {
    const { others, write, clock, hear } = world();
    write(1);
    const stop = new AbortController();
    const watching = others.watch(stop.signal);
    let told = 0;
    others.onChange(() => {
      told += 1;
    });
    await clock.advance(DURATION_MS - 1_000);
    hear();
    expect(told).toBe(0);
    await clock.advance(1_001);
    hear();
    await clock.advance(1_000);
    expect(told).toBe(1);
    stop.abort();
    await watching;
  });
});
