import { gzipSync } from 'node:zlib';
import { startFauxqs } from 'fauxqs';
import { DEMO_MODEL, demoScript } from '../../test/fakes/openai/demo-script.ts';
import { KONFLUX_MODEL, konfluxScript } from '../../test/fakes/openai/konflux-script.ts';
import { startOpenAi } from '../../test/fakes/openai/server.ts';
import { publishToTopic } from '../../test/fakes/sns-publish.ts';

export interface DemoAws {
  readonly endpoint: string;
  readonly queueUrl: string;
  readonly bucket: string;
  /** Publishes a GitLab webhook on the topic that feeds the queue: SNS wraps it, the forwarder packs it. */
  publishWebhook(eventType: string, body: object): Promise<void>;
  messagesLeft(): number;
  stop(): Promise<void>;
}

/** SQS, SNS and S3 in this process (fauxqs): a topic, the queue that it feeds, and a bucket. */
export async function startAws(): Promise<DemoAws> {
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const dead = server.createQueue('gitlab-events-dead');
  const { queueUrl } = server.createQueue('gitlab-events', {
    attributes: {
      VisibilityTimeout: '30',
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: dead.queueArn, maxReceiveCount: '5' }),
    },
  });
  const { topicArn } = server.createTopic('gitlab-webhooks');
  server.subscribe({ topic: 'gitlab-webhooks', queue: 'gitlab-events' });
  const { bucketName } = server.createBucket('hummingbird-sessions');
  return {
    endpoint: server.address,
    queueUrl,
    bucket: bucketName,
    async publishWebhook(eventType, body) {
      const packed = gzipSync(JSON.stringify(body)).toString('base64');
      await publishToTopic(server.address, topicArn, packed, {
        source: 'gitlab',
        event_type: eventType,
        content_encoding: 'gzip+base64',
      });
    },
    messagesLeft() {
      const messages = server.inspectQueue('gitlab-events')?.messages;
      return messages === undefined ? 0 : messages.ready.length + messages.inflight.length;
    },
    stop: () => server.stop(),
  };
}

export interface DemoModel {
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Whether it is the scripted stand-in. */
  readonly scripted: boolean;
  stop(): Promise<void>;
}

/** The model that the environment names, else the scripted stand-in behind a real HTTP endpoint. */
export async function startModel(
  env: Readonly<Record<string, string | undefined>>,
  script: typeof DEMO_MODEL | typeof KONFLUX_MODEL,
): Promise<DemoModel> {
  const { MODEL_BASE_URL: baseUrl, MODEL_NAME: name, MODEL_API_KEY: key } = env;
  if (baseUrl !== undefined || name !== undefined) {
    if (baseUrl === undefined || name === undefined)
      throw new Error(
        'MODEL_BASE_URL and MODEL_NAME belong together: set both, or neither for the scripted stand-in',
      );
    return { name, baseUrl, apiKey: key ?? 'none', scripted: false, stop: async () => undefined };
  }
  const apiKey = 'demo-model-key';
  const scripts = { [DEMO_MODEL]: demoScript, [KONFLUX_MODEL]: konfluxScript };
  const server = await startOpenAi({ scripts, apiKey });
  return { name: script, baseUrl: server.url, apiKey, scripted: true, stop: () => server.stop() };
}
