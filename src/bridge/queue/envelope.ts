import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import type { QueueMessage } from '../port.ts';

/** What a decoded message may take: far above GitLab's largest webhook, far below what a zip bomb unpacks to. */
export const MAX_DECODED_BYTES = 8 * 1024 * 1024;

/** One webhook with the two attributes that say what it is. */
export interface EventEnvelope {
  /** Who forwarded it: `gitlab`. */
  readonly source: string;
  /** `pipeline`, `merge_request`, `note`. */
  readonly eventType: string;
  /** Parsed JSON, of any shape: the border of the payload is events.ts. */
  readonly payload: unknown;
}

export type Decoded =
  | { readonly ok: true; readonly event: EventEnvelope }
  /** `message` says what is wrong and where in the message. */
  | { readonly ok: false; readonly message: string };

export type Opened =
  | {
      readonly ok: true;
      readonly source: string;
      readonly eventType: string;
      /** Reads the payload; never throws. */
      unpack(): Promise<Decoded>;
    }
  | { readonly ok: false; readonly message: string };

/**
 * Reads the three shapes in which an event arrives: an SNS envelope with a plain or a gzip+base64 `Message`, and
 * raw delivery, where the body is the payload and its attributes are native SQS ones. Never throws.
 */
export async function decodeEnvelope(message: Pick<QueueMessage, 'body' | 'attributes'>): Promise<Decoded> {
  const opened = openEnvelope(message);
  return opened.ok ? opened.unpack() : opened;
}

/** What the outside of a message says, without unpacking what is in it. Never throws. */
export function openEnvelope(message: Pick<QueueMessage, 'body' | 'attributes'>): Opened {
  const bytes = Buffer.byteLength(message.body);
  if (bytes > MAX_DECODED_BYTES) return failed(`body: ${bytes} bytes, at most ${MAX_DECODED_BYTES} are read`);
  const body = parseJson(message.body);
  const envelope = body.ok ? snsEnvelope.safeParse(body.value) : undefined;
  if (envelope?.success) {
    const { Message, MessageAttributes } = envelope.data;
    return opened(Message, attributeReader(MessageAttributes), 'Message', 'MessageAttributes');
  }
  if (body.ok && looksLikeEnvelope(body.value)) {
    return failed(
      `body: not a whole SNS envelope: ${z.prettifyError(snsEnvelope.safeParse(body.value).error ?? new z.ZodError([]))}`,
    );
  }
  const raw = opened(message.body, attributeReader(message.attributes), 'body', 'SQS message attributes');
  const packed = attributeReader(message.attributes)('content_encoding');
  // Known already, and its payload is no better when somebody else reads it.
  return raw.ok && !packed && !body.ok ? failed(`body: not JSON: ${body.message}`) : raw;
}

/**
 * The inverse of `decodeEnvelope`: an SNS envelope as text. Compressed unless `compress` is false.
 */
export async function encodeEnvelope(
  event: EventEnvelope,
  options: { readonly compress?: boolean } = {},
): Promise<string> {
  const json = JSON.stringify(event.payload);
  const attributes: Record<string, { Type: string; Value: string }> = {
    source: { Type: 'String', Value: event.source },
    event_type: { Type: 'String', Value: event.eventType },
  };
  if (options.compress === false)
    return JSON.stringify({ Type: 'Notification', Message: json, MessageAttributes: attributes });
  attributes['content_encoding'] = { Type: 'String', Value: GZIP_BASE64 };
  const packed = await compress(Buffer.from(json));
  return JSON.stringify({
    Type: 'Notification',
    Message: packed.toString('base64'),
    MessageAttributes: attributes,
  });
}

const GZIP_BASE64 = 'gzip+base64';

const compress = promisify(gzip);
const uncompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);

const failed = (message: string) => ({ ok: false, message }) as const;

/** SNS writes Type/Value; some forwarders copy the SQS names DataType/StringValue into the body. */
const attribute = z.union([
  z.object({ Value: z.string() }).transform((a) => a.Value),
  z.object({ StringValue: z.string() }).transform((a) => a.StringValue),
]);

const snsEnvelope = z.object({
  Message: z.string(),
  MessageAttributes: z.record(z.string(), attribute).nullish(),
});

/** A GitLab webhook has no capitalised keys, so `Message` or `TopicArn` at the top means an envelope was meant. */
function looksLikeEnvelope(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('Message' in value || 'TopicArn' in value);
}

type ReadAttribute = (name: string) => string | undefined;

function attributeReader(attributes: Readonly<Record<string, string>> | null | undefined): ReadAttribute {
  return (name) => (attributes && Object.hasOwn(attributes, name) ? attributes[name] : undefined);
}

function opened(text: string, read: ReadAttribute, where: string, attributesAt: string): Opened {
  const source = read('source');
  const eventType = read('event_type');
  if (!source || !eventType) {
    const missing = [source ? '' : 'source', eventType ? '' : 'event_type'].filter(Boolean).join(' and ');
    return failed(
      `${attributesAt}: ${missing} missing, so the event cannot be routed; the forwarder must set both`,
    );
  }
  const unpack = async (): Promise<Decoded> => {
    const unpacked = await unpackText(text, read('content_encoding'), where);
    if (!unpacked.ok) return unpacked;
    const json = parseJson(unpacked.text);
    if (!json.ok) return failed(`${where}: not JSON: ${json.message}`);
    return { ok: true, event: { source, eventType, payload: json.value } };
  };
  return { ok: true, source, eventType, unpack };
}

type Unpacked =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string };

async function unpackText(text: string, encoding: string | undefined, where: string): Promise<Unpacked> {
  if (encoding === undefined || encoding === '') return { ok: true, text };
  if (encoding !== GZIP_BASE64) {
    return {
      ok: false,
      message: `content_encoding: ${JSON.stringify(encoding.slice(0, 64))} is unknown, only ${GZIP_BASE64} is read`,
    };
  }
  // Buffer.from skips what is not base64 and would turn a broken message into a shorter one.
  // One class and no more: a pattern with two ways through a blank takes minutes for a megabyte of them.
  if (!/^[A-Za-z0-9+/=\s]*$/.test(text)) return { ok: false, message: `${where}: not base64` };
  try {
    const bytes = await uncompress(Buffer.from(text, 'base64'), { maxOutputLength: MAX_DECODED_BYTES });
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    return { ok: false, message: `${where}: ${unpackProblem(error)}` };
  }
}

function unpackProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_BUFFER_TOO_LARGE') return `unpacks to more than ${MAX_DECODED_BYTES} bytes`;
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'not UTF-8 after unpacking';
  return `cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`;
}

type Json = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string };

function parseJson(text: string): Json {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    // V8 quotes a piece of the text in its message; bounded, since this ends in a log line.
    return { ok: false, message: (error instanceof Error ? error.message : String(error)).slice(0, 120) };
  }
}
