import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { OutgoingMessage, QueueMessage } from '../port.ts';
import { encodeEnvelope, openEnvelope } from './envelope.ts';

/** What metrics tell apart; GitLab has some twenty kinds of events, and a forwarder may send anything. */
export const EVENT_KINDS = ['pipeline', 'merge_request', 'note', 'other', 'unknown'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

export type Route =
  | { readonly kind: 'Forward'; readonly what: EventKind; readonly outgoing: OutgoingMessage }
  /** Cannot be read; `message` says what is wrong and where. */
  | { readonly kind: 'Unroutable'; readonly what: EventKind; readonly message: string };

/**
 * How a message of the standard queue goes on: unchanged, in the group of its discussion when it is a note, else in
 * one of its own, so that it waits for nobody. Only notes are unpacked. Never throws.
 */
export async function routeOf(message: QueueMessage): Promise<Route> {
  const opened = openEnvelope(message);
  if (!opened.ok) return { kind: 'Unroutable', what: 'unknown', message: opened.message };
  const what = eventKind(opened.source, opened.eventType);
  let groupId = message.id;
  if (what === 'note') {
    const decoded = await opened.unpack();
    if (!decoded.ok) return { kind: 'Unroutable', what, message: decoded.message };
    const discussion = noteShape.safeParse(decoded.event.payload).data?.object_attributes.discussion_id;
    if (discussion) groupId = groupOf(discussion);
  }
  const { body, native, id: deduplicationId } = message;
  return {
    kind: 'Forward',
    what,
    outgoing: { body, groupId, deduplicationId, ...(native === undefined ? {} : { native }) },
  };
}

/** The same event, packed; undefined when that does not make it smaller. Never throws. */
export async function packed(
  message: QueueMessage,
  outgoing: OutgoingMessage,
): Promise<OutgoingMessage | undefined> {
  const opened = openEnvelope(message);
  const decoded = opened.ok ? await opened.unpack() : opened;
  if (!decoded.ok) return undefined;
  const { native: _, ...rest } = outgoing;
  const body = await encodeEnvelope(decoded.event);
  return Buffer.byteLength(body) < Buffer.byteLength(message.body) ? { ...rest, body } : undefined;
}

/** The first of each group: nothing overtakes its own group, whatever becomes of the one before it. */
export function firstOfEachGroup<T extends { readonly outgoing: OutgoingMessage }>(
  waiting: readonly T[],
): readonly T[] {
  const groups = new Set<string | undefined>();
  return waiting.filter(({ outgoing: { groupId } }) => !groups.has(groupId) && groups.add(groupId));
}

const noteShape = z.object({ object_attributes: z.object({ discussion_id: z.string().nullish() }) });

function eventKind(source: string, eventType: string): EventKind {
  if (source !== 'gitlab') return 'other';
  return EVENT_KINDS.find((kind) => kind === eventType && kind !== 'unknown') ?? 'other';
}

/** GitLab's are 40 hex digits. SQS takes up to 128 letters, digits and punctuation; all else becomes its hash. */
function groupOf(discussion: string): string {
  if (/^[A-Za-z0-9!"#$%&'()*+,./:;<=>?@[\\\]^_`{|}~-]{1,128}$/.test(discussion)) return discussion;
  return createHash('sha256').update(discussion).digest('hex');
}
