import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { SQSClient } from '@aws-sdk/client-sqs';
import { afterEach, describe, expect, it } from 'vitest';
import { MAX_REQUEST_BYTES, messageBytes, sendInOrder } from './sqs-send.ts';

interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
}
type Failed = {
  readonly Id: string;
  readonly SenderFault: boolean;
  readonly Code: string;
  readonly Message?: string;
};
type Answer =
  | { readonly failed: readonly Failed[] }
  | { readonly status: number; readonly type: string; readonly message: string };

let server: Server | undefined;
let client: SQSClient | undefined;
afterEach(async () => {
  client?.destroy();
  await new Promise((resolve) => (server?.listening ? server.close(resolve) : resolve(undefined)));
});

/** The wire as SQS's JSON protocol has it; the bodies of each request are kept. */
async function aWire(answer: (bodies: readonly string[]) => Answer) {
  const requests: (readonly string[])[] = [];
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { Entries }: { Entries: readonly Entry[] } = JSON.parse(Buffer.concat(chunks).toString());
      requests.push(Entries.map(({ MessageBody }) => MessageBody));
      const found = answer(Entries.map(({ MessageBody }) => MessageBody));
      response.setHeader('content-type', 'application/x-amz-json-1.0');
      if ('status' in found) {
        response.statusCode = found.status;
        response.end(JSON.stringify({ __type: `com.amazonaws.sqs#${found.type}`, message: found.message }));
        return;
      }
      const Successful = Entries.filter(({ Id }) => !found.failed.some((one) => one.Id === Id)).map(
        ({ Id, MessageBody }) => ({
          Id,
          MessageId: `m${Id}`,
          MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex'),
        }),
      );
      response.end(JSON.stringify({ Successful, Failed: found.failed }));
    });
  });
  const listening = server.listen(0, '127.0.0.1');
  await new Promise((resolve) => listening.once('listening', resolve));
  const address = listening.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  client = new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
  });
  const sqs = client;
  return {
    requests,
    send: (bodies: readonly string[], signal?: AbortSignal) =>
      sendInOrder(
        sqs,
        `http://127.0.0.1:${port}/1/q.fifo`,
        bodies.map((body) => ({ body, groupId: 'g', deduplicationId: body.slice(0, 20) })),
        signal,
      ),
  };
}

const kinds = async (outcomes: ReturnType<Awaited<ReturnType<typeof aWire>>['send']>) =>
  (await outcomes).map(({ kind }) => kind);
const fine = (): Answer => ({ failed: [] });

describe('one send', () => {
  it('is one request, in the order given', async () => {
    const wire = await aWire(fine);
    expect(await kinds(wire.send(['a', 'b', 'c']))).toEqual(['Sent', 'Sent', 'Sent']);
    expect(wire.requests).toEqual([['a', 'b', 'c']]);
  });

  it('is as many requests as the sizes need, still in that order', async () => {
    const wire = await aWire(fine);
    const large = (text: string) => text.padEnd(MAX_REQUEST_BYTES / 2 - 10, '.');
    expect(await kinds(wire.send([large('a'), large('b'), large('c'), 'd']))).toEqual(Array(4).fill('Sent'));
    expect(wire.requests.map((bodies) => bodies.map((body) => body[0]))).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('has at most ten messages in a request', async () => {
    const wire = await aWire(fine);
    await wire.send(Array.from({ length: 12 }, (_, at) => `m${at}`));
    expect(wire.requests.map((bodies) => bodies.length)).toEqual([10, 2]);
  });

  it('is nothing when there is nothing to send', async () => {
    const wire = await aWire(fine);
    expect(await wire.send([])).toEqual([]);
    expect(wire.requests).toEqual([]);
  });
});

describe('what the queue says of one message', () => {
  it.each([
    ['too large', 'InvalidParameterValue', 'Message must be shorter than 1024 bytes.', 'TooLarge'],
    [
      'with a character that SQS does not take',
      'InvalidMessageContents',
      'Invalid characters found',
      'Refused',
    ],
    ['at a moment when the queue is busy', 'InternalError', 'try again', 'Failed'],
  ])('%s is its outcome alone', async (_name, Code, Message, kind) => {
    const wire = await aWire(() => ({ failed: [{ Id: '1', SenderFault: true, Code, Message }] }));
    const outcomes = await wire.send(['a', 'b', 'c']);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(['Sent', kind, 'Sent']);
    expect(outcomes[1]).toMatchObject({ message: `${Code}: ${Message}` });
  });
});

describe('what the queue says of a request', () => {
  it.each([
    ['BatchRequestTooLong', 'Batch requests cannot be longer than 262144 bytes.', 'TooLarge'],
    ['InvalidParameterValue', 'Reason: Message must be shorter than 262144 bytes.', 'TooLarge'],
    ['InvalidMessageContents', 'Invalid characters found', 'Refused'],
  ])('because of one message (%s) holds up none of the others', async (type, message, kind) => {
    const wire = await aWire((bodies) => (bodies.includes('bad') ? { status: 400, type, message } : fine()));
    expect(await kinds(wire.send(['a', 'bad', 'c']))).toEqual(['Sent', kind, 'Sent']);
    expect(wire.requests).toEqual([['a', 'bad', 'c'], ['a'], ['bad'], ['c']]);
  });

  it.each([
    [403, 'AccessDeniedException', 'not authorized to perform: sqs:sendmessage'],
    [400, 'QueueDoesNotExist', 'The specified queue does not exist.'],
    [400, 'RequestThrottled', 'slow down'],
    [400, 'KmsAccessDenied', 'no right to the key'],
    [500, 'InternalFailure', 'oops'],
  ])('with %i %s may pass, and is not repeated one by one', async (status, type, message) => {
    const wire = await aWire(() => ({ status, type, message }));
    expect(await kinds(wire.send(['a', 'b']))).toEqual(['Failed', 'Failed']);
    expect(wire.requests.length).toBe(1);
  });

  it('by not answering, or not being there, may pass', async () => {
    const wire = await aWire(fine);
    expect(await kinds(wire.send(['a'], AbortSignal.abort(new Error('stop'))))).toEqual(['Failed']);
    await new Promise((resolve) => server?.close(resolve));
    expect(await kinds(wire.send(['a', 'b']))).toEqual(['Failed', 'Failed']);
  });
});

it('counts bytes as SQS does: body, and name, type and value of each attribute', () => {
  expect(
    messageBytes({
      body: 'é',
      native: {
        source: { type: 'String', value: 'gitlab' },
        sum: { type: 'Binary', value: new Uint8Array(5) },
      },
    }),
  ).toBe(2 + (6 + 6 + 6) + (3 + 6 + 5));
});
