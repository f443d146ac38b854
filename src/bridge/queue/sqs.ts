import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import type { Queue, QueueMessage } from '../port.ts';

export interface SqsOptions {
  readonly queueUrl: string;
  readonly region: string;
  /** Another endpoint than AWS's own: an emulator, a VPC endpoint. */
  readonly endpoint?: string;
  /** Left out: the SDK's own chain (web identity of the ServiceAccount, instance role). */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** One SQS queue, standard or FIFO. `close` ends its connections. */
export function sqsQueue(options: SqsOptions): Queue & { close(): void } {
  const { queueUrl } = options;
  const client = new SQSClient({
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: REQUEST_MS,
      throwOnRequestTimeout: true,
    },
  });
  return {
    async receive({ max, waitSeconds, signal }) {
      signal.throwIfAborted();
      const command = new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: Math.max(1, Math.min(max, MAX_BATCH)),
        WaitTimeSeconds: Math.min(waitSeconds, MAX_WAIT_SECONDS),
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['ApproximateReceiveCount', 'MessageGroupId'],
      });
      try {
        const { Messages } = await client.send(command, { abortSignal: signal });
        return (Messages ?? []).map(toQueueMessage);
      } catch (error) {
        // The SDK rejects with an AbortError of its own, which hides why it was asked to stop.
        signal.throwIfAborted();
        throw error;
      }
    },
    async delete(message) {
      await client.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle: message.receipt }));
    },
    async changeVisibility(message, seconds) {
      const VisibilityTimeout = Math.max(0, Math.round(seconds));
      await client.send(
        new ChangeMessageVisibilityCommand({
          QueueUrl: queueUrl,
          ReceiptHandle: message.receipt,
          VisibilityTimeout,
        }),
      );
    },
    async send(body, { groupId, deduplicationId } = {}) {
      await client.send(
        new SendMessageCommand({
          QueueUrl: queueUrl,
          MessageBody: body,
          ...(groupId === undefined ? {} : { MessageGroupId: groupId }),
          ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
        }),
      );
    },
    close: () => client.destroy(),
  };
}

/** SQS's own limits of one receive. */
const MAX_BATCH = 10;
const MAX_WAIT_SECONDS = 20;

const CONNECT_MS = 5_000;
/** A long poll is silent for up to 20 s; twice that is a dead connection. */
const REQUEST_MS = 40_000;

function toQueueMessage(message: Message): QueueMessage {
  const groupId = message.Attributes?.MessageGroupId;
  return {
    id: message.MessageId ?? '',
    receipt: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    receiveCount: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
    ...(groupId === undefined ? {} : { groupId }),
    attributes: textAttributes(message.MessageAttributes),
  };
}

/** Binary attributes carry nothing that we read. */
function textAttributes(attributes: Message['MessageAttributes']): Readonly<Record<string, string>> {
  const entries = Object.entries(attributes ?? {});
  return Object.fromEntries(
    entries.flatMap(([name, { StringValue }]) => (StringValue === undefined ? [] : [[name, StringValue]])),
  );
}
