import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { startFauxqs } from 'fauxqs';
import { startMoto } from '../../hack/moto/moto.ts';
import type { Queue } from '../../src/bridge/port.ts';
import { sqsQueue } from '../../src/bridge/queue/sqs.ts';
import { unique } from '../builders/kube-access.ts';
import { callSns, publishToTopic } from '../fakes/sns-publish.ts';

const REGION = 'us-east-1';
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

export const EMULATORS = {
  fauxqs: async () => {
    const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
    return { address: server.address, stop: () => server.stop() };
  },
  moto: () => startMoto((line) => console.error(line)),
} as const;

export interface QueueOptions {
  readonly maxReceiveCount?: number;
  readonly maximumMessageSize?: number;
}

/** A queue of the test's own, with a dead-letter queue of its kind. */
export interface EmulatedQueue {
  readonly queue: Queue;
  readonly url: string;
  readonly arn: string;
  /** One message straight into it. Attributes that are text are of type String. */
  put(
    body: string,
    attributes?: Readonly<Record<string, string | MessageAttributeValue>>,
    fifo?: { readonly groupId: string; readonly deduplicationId: string },
  ): Promise<void>;
  /** Messages that wait, those in somebody's hands included. */
  left(): Promise<number>;
  /** Bodies that came into the dead-letter queue, up to now. */
  dead(): Promise<readonly string[]>;
}

/** SNS and SQS of one emulator. */
export interface Emulator {
  readonly address: string;
  standard(options?: QueueOptions): Promise<EmulatedQueue>;
  fifo(options?: QueueOptions): Promise<EmulatedQueue>;
  /** A topic that feeds the queue; publishes to it. */
  topic(
    queue: EmulatedQueue,
    options?: { readonly raw?: boolean },
  ): Promise<(message: string, attributes: Readonly<Record<string, string>>) => Promise<void>>;
  close(): Promise<void>;
}

export async function anEmulator(name: keyof typeof EMULATORS): Promise<Emulator> {
  const server = await EMULATORS[name]();
  const { address } = server;
  const client = new SQSClient({ endpoint: address, region: REGION, credentials });
  const opened: { close(): void }[] = [];

  const create = async (QueueName: string, Attributes: Record<string, string>) => {
    const { QueueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName, Attributes }));
    const { Attributes: found } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
    );
    return { url: QueueUrl, arn: found?.QueueArn ?? '' };
  };

  const make = async (kind: 'standard' | 'fifo', options: QueueOptions = {}): Promise<EmulatedQueue> => {
    const suffix = kind === 'fifo' ? '.fifo' : '';
    const fifo: Record<string, string> = kind === 'fifo' ? { FifoQueue: 'true' } : {};
    const base = unique(kind);
    const dead = await create(`${base}-dead${suffix}`, fifo);
    const { maxReceiveCount = 10, maximumMessageSize = 1024 * 1024 } = options;
    const { url, arn } = await create(`${base}${suffix}`, {
      ...fifo,
      MaximumMessageSize: String(maximumMessageSize),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: dead.arn,
        maxReceiveCount: String(maxReceiveCount),
      }),
    });
    const queue = sqsQueue({ queueUrl: url, region: REGION, endpoint: address, credentials });
    opened.push(queue);
    const died: string[] = [];
    return {
      queue,
      url,
      arn,
      async put(body, attributes = {}, ids) {
        const entries = Object.entries(attributes).map(([key, value]) => [
          key,
          typeof value === 'string' ? { DataType: 'String', StringValue: value } : value,
        ]);
        await client.send(
          new SendMessageCommand({
            QueueUrl: url,
            MessageBody: body,
            ...(entries.length === 0 ? {} : { MessageAttributes: Object.fromEntries(entries) }),
            ...(ids ? { MessageGroupId: ids.groupId, MessageDeduplicationId: ids.deduplicationId } : {}),
          }),
        );
      },
      async left() {
        const { Attributes = {} } = await client.send(
          new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }),
        );
        return (
          Number(Attributes['ApproximateNumberOfMessages']) +
          Number(Attributes['ApproximateNumberOfMessagesNotVisible'])
        );
      },
      async dead() {
        const { Messages = [] } = await client.send(
          new ReceiveMessageCommand({ QueueUrl: dead.url, MaxNumberOfMessages: 10 }),
        );
        for (const { Body = '', ReceiptHandle } of Messages) {
          died.push(Body);
          await client.send(new DeleteMessageCommand({ QueueUrl: dead.url, ReceiptHandle }));
        }
        return died;
      },
    };
  };

  return {
    address,
    standard: (options) => make('standard', options),
    fifo: (options) => make('fifo', options),
    async topic({ arn }, { raw = false } = {}) {
      const made = await callSns(address, { Action: 'CreateTopic', Name: unique('webhooks') });
      const topicArn = /<TopicArn>([^<]+)</.exec(made)?.[1] ?? '';
      await callSns(address, {
        ...{ Action: 'Subscribe', TopicArn: topicArn, Protocol: 'sqs', Endpoint: arn },
        ...(raw
          ? { 'Attributes.entry.1.key': 'RawMessageDelivery', 'Attributes.entry.1.value': 'true' }
          : {}),
      });
      return (message, attributes) => publishToTopic(address, topicArn, message, attributes);
    },
    async close() {
      for (const queue of opened) queue.close();
      client.destroy();
      await server.stop();
    },
  };
}
