import {
  ChangeMessageVisibilityCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs';
import type { NativeAttribute, Queue, QueueMessage } from '../port.ts';
import { sendInOrder } from './sqs-send.ts';

export interface SqsOptions {
  readonly queueUrl: string;
  readonly region: string;
  /** Another endpoint than AWS's own: an emulator, a VPC endpoint. */
  readonly endpoint?: string;
  /** Left out: the SDK's own chain (web identity of the ServiceAccount, instance role). */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Sends the SDK's requests, within these deadlines; left out: directly. */
  readonly requests?: (deadlines: typeof DEADLINES) => NonNullable<SQSClientConfig['requestHandler']>;
}

/** One SQS queue, standard or FIFO. `close` ends its connections. */
export function sqsQueue(options: SqsOptions): Queue & { close(): void } {
  const { queueUrl } = options;
  const client = new SQSClient({
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    requestHandler: options.requests?.(DEADLINES) ?? DEADLINES,
  });
  return {
    async receive({ max, waitSeconds, visibilitySeconds, signal }) {
      signal.throwIfAborted();
      const command = new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: Math.max(1, Math.min(max, MAX_BATCH)),
        WaitTimeSeconds: Math.min(waitSeconds, MAX_WAIT_SECONDS),
        ...(visibilitySeconds === undefined ? {} : { VisibilityTimeout: visibilitySeconds }),
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
    async deleteAll(messages) {
      const Entries = messages.map(({ receipt }, at) => ({ Id: String(at), ReceiptHandle: receipt }));
      if (Entries.length === 0) return;
      const { Failed = [] } = await client.send(
        new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }),
      );
      const [first] = Failed;
      if (first)
        throw new Error(
          `${Failed.length} of ${Entries.length} not deleted: ${first.Code} ${first.Message ?? ''}`,
        );
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
    send: (messages, signal) => sendInOrder(client, queueUrl, messages, signal),
    close: () => client.destroy(),
  };
}

/** SQS's own limits of one receive. */
const MAX_BATCH = 10;
const MAX_WAIT_SECONDS = 20;

const DEADLINES = {
  connectionTimeout: 5_000,
  /** A long poll is silent for up to 20 s; twice that is a dead connection. */
  requestTimeout: 40_000,
  throwOnRequestTimeout: true,
};

function toQueueMessage(message: Message): QueueMessage {
  const groupId = message.Attributes?.MessageGroupId;
  return {
    id: message.MessageId ?? '',
    receipt: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    receiveCount: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
    ...(groupId === undefined ? {} : { groupId }),
    attributes: textAttributes(message.MessageAttributes),
    ...nativeAttributes(message.MessageAttributes),
  };
}

/** Binary attributes carry nothing that we read. */
function textAttributes(attributes: Message['MessageAttributes']): Readonly<Record<string, string>> {
  const entries = Object.entries(attributes ?? {});
  return Object.fromEntries(
    entries.flatMap(([name, { StringValue }]) => (StringValue === undefined ? [] : [[name, StringValue]])),
  );
}

function nativeAttributes(attributes: Message['MessageAttributes']): Pick<QueueMessage, 'native'> {
  const native = Object.entries(attributes ?? {}).flatMap(
    ([name, { DataType: type = 'String', StringValue, BinaryValue }]): [string, NativeAttribute][] => {
      const value = StringValue ?? BinaryValue;
      return value === undefined ? [] : [[name, { type, value }]];
    },
  );
  return native.length === 0 ? {} : { native: Object.fromEntries(native) };
}
