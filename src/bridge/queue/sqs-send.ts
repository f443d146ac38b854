import {
  type MessageAttributeValue,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { NativeAttribute, OutgoingMessage, SendOutcome } from '../port.ts';

/** What SQS takes as one message, and as all messages of one request together. */
export const MAX_REQUEST_BYTES = 1024 * 1024;

/**
 * SendMessageBatch, in as few requests as the sizes allow. A request that is refused as a whole because of one
 * message is repeated with each of them alone, so that one cannot hold up the others. Never rejects.
 */
export async function sendInOrder(
  client: SQSClient,
  queueUrl: string,
  messages: readonly OutgoingMessage[],
  signal?: AbortSignal,
): Promise<readonly SendOutcome[]> {
  const outcomes: SendOutcome[] = [];
  for (const request of requests(messages)) {
    const answer = await sendOne(client, queueUrl, request, signal);
    if (answer.kind === 'Outcomes') outcomes.push(...answer.outcomes);
    else if (request.length === 1 || answer.outcome.kind === 'Failed')
      outcomes.push(...request.map(() => answer.outcome));
    else
      for (const message of request) {
        const alone = await sendOne(client, queueUrl, [message], signal);
        outcomes.push(...(alone.kind === 'Outcomes' ? alone.outcomes : [alone.outcome]));
      }
  }
  return outcomes;
}

/** As SQS counts it: body, and name, type and value of each attribute. */
export function messageBytes({ body, native = {} }: Pick<OutgoingMessage, 'body' | 'native'>): number {
  const attributes = Object.entries(native).map(([name, { type, value }]) => {
    const bytes = typeof value === 'string' ? Buffer.byteLength(value) : value.byteLength;
    return Buffer.byteLength(name) + Buffer.byteLength(type) + bytes;
  });
  return attributes.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(body));
}

/** Neighbours that fit into one request. One that is too large stands alone: SQS says so, and by how much. */
function requests(messages: readonly OutgoingMessage[]): readonly (readonly OutgoingMessage[])[] {
  const all: OutgoingMessage[][] = [];
  let room = 0;
  for (const message of messages) {
    const bytes = messageBytes(message);
    const last = all.at(-1);
    if (last !== undefined && last.length < MAX_ENTRIES && bytes <= room) last.push(message);
    else {
      all.push([message]);
      room = MAX_REQUEST_BYTES;
    }
    room -= bytes;
  }
  return all;
}

const MAX_ENTRIES = 10;

type Answer =
  | { readonly kind: 'Outcomes'; readonly outcomes: readonly SendOutcome[] }
  /** The request as a whole. */
  | { readonly kind: 'Whole'; readonly outcome: SendOutcome };

async function sendOne(
  client: SQSClient,
  queueUrl: string,
  messages: readonly OutgoingMessage[],
  signal: AbortSignal | undefined,
): Promise<Answer> {
  try {
    const { Failed = [] } = await client.send(
      new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: messages.map(entry) }),
      signal === undefined ? {} : { abortSignal: signal },
    );
    const failed = new Map(Failed.map((one) => [one.Id, one]));
    const outcomes = messages.map((_, at): SendOutcome => {
      const one = failed.get(String(at));
      if (one === undefined) return { kind: 'Sent' };
      return outcome(one.Code ?? '', one.Message ?? '');
    });
    return { kind: 'Outcomes', outcomes };
  } catch (error) {
    const [name, message] = error instanceof Error ? [error.name, error.message] : ['', String(error)];
    return { kind: 'Whole', outcome: outcome(name, message) };
  }
}

/** What says something about the message; all else (throttled, no right, no such queue, no answer) may pass. */
function outcome(code: string, text: string): SendOutcome {
  const message = `${code}: ${text}`.slice(0, 500);
  if (/BatchRequestTooLong/.test(code)) return { kind: 'TooLarge', message };
  if (/InvalidParameterValue/.test(code) && /shorter than/.test(text)) return { kind: 'TooLarge', message };
  if (/InvalidParameterValue|InvalidMessageContents/.test(code)) return { kind: 'Refused', message };
  return { kind: 'Failed', message };
}

function entry(
  { body, native = {}, groupId, deduplicationId }: OutgoingMessage,
  at: number,
): SendMessageBatchRequestEntry {
  const attributes = Object.entries(native).map(([name, value]) => [name, attribute(value)] as const);
  return {
    Id: String(at),
    MessageBody: body,
    ...(attributes.length === 0 ? {} : { MessageAttributes: Object.fromEntries(attributes) }),
    ...(groupId === undefined ? {} : { MessageGroupId: groupId }),
    ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
  };
}

function attribute({ type, value }: NativeAttribute): MessageAttributeValue {
  return typeof value === 'string'
    ? { DataType: type, StringValue: value }
    : { DataType: type, BinaryValue: value };
}
