import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type S3Server, startS3 } from '../../test/fakes/s3/server.ts';
import { sqsQueue } from '../bridge/queue/sqs.ts';
import { createS3Store } from '../store/s3.ts';
import { AwsRequests } from './aws-requests.ts';
import { readProxies } from './proxies.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

let s3: S3Server;
let aws: FauxqsServer;
let proxy: Server;
/** Names that the proxy was asked for. */
const asked: string[] = [];
let refuseWith: number | undefined;

/** A proxy on loopback that knows two names. */
beforeAll(async () => {
  s3 = await startS3('sessions');
  aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  proxy = createServer((incoming, answer) => {
    const url = new URL(incoming.url ?? '');
    asked.push(url.hostname);
    const target = new URL(url.hostname === 's3.test' ? s3.endpoint : aws.address);
    const { method = 'GET', headers } = incoming;
    const { hostname, port } = target;
    const onward = request(
      { hostname, port, path: `${url.pathname}${url.search}`, method, headers },
      (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(answer);
      },
    );
    onward.on('error', () => answer.destroy());
    incoming.pipe(onward);
  });
  proxy.on('connect', (_, socket) => {
    socket.end(`HTTP/1.1 ${refuseWith} No\r\ncontent-length: 0\r\n\r\n`);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  proxy?.close();
  await Promise.all([s3?.stop(), aws?.stop()]);
});

const proxyUrl = () => `http://me:pw-1@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
const through = (env: Readonly<Record<string, string>>) => {
  const proxies = readProxies(env);
  return (deadlines: ConstructorParameters<typeof AwsRequests>[1]) => new AwsRequests(proxies, deadlines);
};
const storeAt = (endpoint: string, env: Readonly<Record<string, string>>) =>
  createS3Store({
    ...{ bucket: 'sessions', region: 'us-east-1', endpoint, pathStyle: true, credentials },
    requests: through(env),
  });

test('the bucket is reached through the proxy, with objects of several parts', async () => {
  const store = storeAt('http://s3.test', { HTTP_PROXY: proxyUrl() });
  const large = new Uint8Array(9 * 1024 * 1024).fill(7);
  await store.put('sessions/a', Buffer.from('hello'), { ifNoneMatch: true });
  const put = await store.put('sessions/b', [large.subarray(0, 100), large.subarray(100)].values() as never);
  expect(put).toMatchObject({ kind: 'Stored', bytes: large.byteLength });
  expect(new Set(asked)).toEqual(new Set(['s3.test']));
  expect(s3.objects.get('sessions/a')?.body.toString()).toBe('hello');
  expect(s3.objects.get('sessions/b')?.body.byteLength).toBe(large.byteLength);
  store.close();
});

test('a queue is reached through the proxy', async () => {
  const { queueUrl } = aws.createQueue('events');
  const queue = sqsQueue({
    ...{ queueUrl, region: 'us-east-1', endpoint: 'http://sqs.test', credentials },
    requests: through({ HTTP_PROXY: proxyUrl() }),
  });
  await queue.send([{ body: 'hello' }], AbortSignal.timeout(30_000));
  const signal = AbortSignal.timeout(30_000);
  const [message] = await queue.receive({ max: 1, waitSeconds: 1, signal });
  expect(message?.body).toBe('hello');
  expect(asked.at(-1)).toBe('sqs.test');
  queue.close();
});

test('this machine, and what NO_PROXY names, is asked directly', async () => {
  const before = asked.length;
  const store = storeAt(s3.endpoint, { HTTP_PROXY: proxyUrl() });
  await store.put('sessions/c', Buffer.from('direct'));
  expect(s3.objects.get('sessions/c')?.body.toString()).toBe('direct');
  store.close();
  const excepted = storeAt('http://s3.test', { HTTP_PROXY: proxyUrl(), NO_PROXY: '.test' });
  await expect(excepted.get('sessions/c')).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
  excepted.close();
  expect(asked).toHaveLength(before);
});

test.each([
  [403, 'the proxy answered 403; correct its rules, HTTPS_PROXY or NO_PROXY'],
  [407, 'the proxy answered 407; put its user and password into HTTPS_PROXY'],
])('a proxy that refuses with %i is named, without its password', async (status, message) => {
  refuseWith = status;
  const store = storeAt('https://s3.test', { HTTPS_PROXY: proxyUrl() });
  const error: unknown = await store.get('sessions/c').catch((reason) => reason);
  expect(String(error)).toContain(message);
  expect(`${error} ${error instanceof Error ? `${error.stack} ${error.cause}` : ''}`).not.toContain('pw-1');
  store.close();
});
