import { createHash } from 'node:crypto';
import { backoffMs, type Clock, sleep, systemClock } from './clock.ts';
import { isKubeError } from './errors.ts';
import { EVENT, type Event } from './kinds.ts';
import { errorFields, type Logger, silentLogger } from './log.ts';
import type { EventRecorder, EventTarget, KubeClient } from './port.ts';

export interface EventRecorderOptions {
  readonly client: KubeClient;
  /** Who tells: `source.component`, for `kubectl describe`. */
  readonly component: string;
  /** Which replica. */
  readonly instance: string;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

/** The API server's own bound. */
const MAX_MESSAGE_BYTES = 1024;
/** Per target: a burst, then one every so often; what is over is counted in the next write. */
const BURST = 25;
const REFILL_MS = 10_000;
/** Bound of what waits to be written; more is dropped, with a word in the log. */
const MAX_PENDING = 1_000;
/** An API server that restarts is waited for; with the backoff below some 6 s in all. */
const ATTEMPTS = 6;
/** Remembered for aggregation; the oldest is forgotten. */
const MAX_KNOWN = 2_000;
/** Equal events within this are one Event with a count, as in client-go. */
const AGGREGATE_MS = 600_000;

interface Known {
  readonly event: Event;
  count: number;
  lastAtMs: number;
  /** It was written at least once. */
  created: boolean;
  queued: boolean;
}

/** Writes core/v1 Events beside their target, one at a time in the order told; equal ones become a count. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, component, instance } = options;
  const clock = options.clock ?? systemClock;
  const logger = options.logger ?? silentLogger;
  const known = new Map<string, Known>();
  const pending: Known[] = [];
  const budgets = new Map<string, { tokens: number; atMs: number }>();
  let sending: Promise<void> | undefined;

  function record(target: EventTarget, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const text = cut(message, MAX_MESSAGE_BYTES);
    const now = clock.monotonicMs();
    const key = JSON.stringify([
      target.kind,
      target.metadata.namespace,
      target.metadata.name,
      target.metadata.uid,
      type,
      reason,
      text,
    ]);
    const seen = known.get(key);
    const entry =
      seen !== undefined && now - seen.lastAtMs < AGGREGATE_MS
        ? seen
        : fresh(target, type, reason, text, key);
    entry.count += 1;
    entry.lastAtMs = now;
    known.delete(key);
    known.set(key, entry); // youngest last
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN) break;
      known.delete(oldest);
    }
    if (entry.queued || !allowed(target, now)) return;
    if (pending.length >= MAX_PENDING) {
      logger.warn({ component, reason }, 'too many Events wait for the API server, one is dropped');
      return;
    }
    entry.queued = true;
    pending.push(entry);
    sending ??= send().finally(() => {
      sending = undefined;
    });
  }

  function fresh(target: EventTarget, type: string, reason: string, message: string, key: string): Known {
    const { name = '', namespace, uid, resourceVersion } = target.metadata;
    const at = clock.now().toISOString();
    // Unique per target, words and first time, so that a second replica's event never collides.
    const digest = createHash('sha256').update(`${key}\0${at}\0${instance}`).digest('hex').slice(0, 16);
    const event: Event = {
      apiVersion: 'v1',
      kind: 'Event',
      // Events of cluster-scoped objects live in `default`.
      metadata: { name: `${name.slice(0, 230)}.${digest}`, namespace: namespace ?? 'default' },
      involvedObject: {
        apiVersion: target.apiVersion,
        kind: target.kind,
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      type,
      reason: cut(reason, 128),
      message,
      firstTimestamp: seconds(at),
      source: { component, host: instance },
      reportingComponent: component,
      reportingInstance: instance,
    };
    return { event, count: 0, lastAtMs: 0, created: false, queued: false };
  }

  function allowed(target: EventTarget, now: number): boolean {
    const id = `${target.metadata.uid ?? ''}/${target.metadata.namespace ?? ''}/${target.metadata.name ?? ''}`;
    const budget = budgets.get(id) ?? { tokens: BURST, atMs: now };
    const tokens = Math.min(BURST, budget.tokens + (now - budget.atMs) / REFILL_MS);
    budgets.delete(id);
    budgets.set(id, { tokens: tokens >= 1 ? tokens - 1 : tokens, atMs: now });
    for (const oldest of budgets.keys()) {
      if (budgets.size <= MAX_KNOWN) break;
      budgets.delete(oldest);
    }
    return tokens >= 1;
  }

  async function send(): Promise<void> {
    // Leaves the caller's turn first, so that events told in one go are counted together.
    await Promise.resolve();
    for (let entry = pending.shift(); entry !== undefined; entry = pending.shift()) {
      entry.queued = false;
      try {
        await persist(entry);
      } catch (error) {
        logger.warn(
          { component, reason: entry.event.reason, ...errorFields(error) },
          'an Event could not be written',
        );
      }
    }
  }

  async function persist(entry: Known): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write(entry);
      } catch (error) {
        if (attempt >= ATTEMPTS || !isKubeError(error) || !error.retryable) throw error;
        await sleep(clock, backoffMs(attempt, 200, 2_000, Math.random));
      }
    }
  }

  async function write(entry: Known): Promise<void> {
    const { event, count } = entry;
    const last = { count, lastTimestamp: seconds(clock.now().toISOString()) };
    if (entry.created) {
      const { name = '', namespace = '' } = event.metadata;
      try {
        await client.patch(EVENT, { name, namespace }, { type: 'merge', body: last });
        return;
      } catch (error) {
        // The API server forgets Events after an hour.
        if (!isKubeError(error, 'NotFound')) throw error;
      }
    }
    try {
      await client.create(EVENT, { ...event, ...last });
    } catch (error) {
      // An earlier attempt got through although its answer was lost.
      if (!isKubeError(error, 'AlreadyExists')) throw error;
    }
    entry.created = true;
  }

  return {
    record(target, type, reason, message) {
      try {
        record(target, type, reason, message);
      } catch (error) {
        logger.warn({ component, reason, ...errorFields(error) }, 'an Event could not be made');
      }
    },
    async flush() {
      while (sending !== undefined) await sending;
    },
  };
}

/** The longest beginning of `text` within `maxBytes` of UTF-8, with an ellipsis when something was cut. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= maxBytes) return text;
  let end = maxBytes - 3;
  // Not in the middle of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString('utf8')}…`;
}

/** `metav1.Time` has whole seconds. */
function seconds(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z');
}
