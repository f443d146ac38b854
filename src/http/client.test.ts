import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { createHttpClient, type HttpClient, type HttpClientOptions, HttpError } from './client.ts';
import type { HttpClock } from './clock.ts';
import { createRedactor } from './redaction.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;

async function serve(handler: Handler): Promise<{ url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    handler(request, response, seen.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

function fakeClock(): HttpClock & { slept: number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => Date.parse('2026-01-01T00:00:00Z'),
    random: () => 1,
    sleep: async (ms) => void slept.push(ms),
  };
}

function client(options: HttpClientOptions = {}): HttpClient {
  const made = createHttpClient(options);
  cleanups.push(() => made.close());
  return made;
}

const failure = async (promise: Promise<unknown>): Promise<HttpError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HttpError);
  return error as HttpError;
};

async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _chunk of body);
}

test('a GET is repeated after 503 with growing pauses and then answers', async () => {
  const { url } = await serve((_request, response, count) => {
    response.statusCode = count < 3 ? 503 : 200;
    response.end('"fine"');
  });
  const clock = fakeClock();
  const answer = await client({ clock }).request({ url });
  expect(answer.json()).toBe('fine');
  expect(clock.slept).toEqual([500, 1000]);
});

test('a POST is sent once, whatever comes back', async () => {
  const { url, seen } = await serve((_request, response) => {
    response.statusCode = 503;
    response.end();
  });
  const error = await failure(client({ clock: fakeClock() }).request({ url, method: 'POST', body: 'x' }));
  expect(error).toMatchObject({ status: 503, retryable: true, method: 'POST' });
  expect(seen).toHaveLength(1);
});

test('a POST that is marked idempotent is repeated', async () => {
  const { url, seen } = await serve((_request, response, count) => {
    if (count === 1) return void response.destroy();
    response.end('{}');
  });
  await client({ clock: fakeClock() }).request({ url, method: 'POST', body: 'x', idempotent: true });
  expect(seen).toHaveLength(2);
});

test('a lost answer to a POST is an Interrupted error and not a second POST', async () => {
  const { url, seen } = await serve((_request, response) => void response.destroy());
  const error = await failure(client({ clock: fakeClock() }).request({ url, method: 'POST', body: 'x' }));
  expect(error).toMatchObject({ code: 'Interrupted', retryable: true, status: undefined });
  expect(seen).toHaveLength(1);
});

test('Retry-After in seconds is waited for', async () => {
  const { url } = await serve((_request, response, count) => {
    if (count === 1) response.writeHead(429, { 'retry-after': '7' });
    response.end();
  });
  const clock = fakeClock();
  await client({ clock }).request({ url });
  expect(clock.slept).toEqual([7000]);
});

test('Retry-After as a date is waited for', async () => {
  const { url } = await serve((_request, response, count) => {
    if (count === 1) response.writeHead(503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' });
    response.end();
  });
  const clock = fakeClock();
  await client({ clock }).request({ url });
  expect(clock.slept).toEqual([9000]);
});

test('a Retry-After beyond the cap is handed to the caller and not shortened', async () => {
  const { url, seen } = await serve((_request, response) => {
    response.writeHead(429, { 'retry-after': '3600' });
    response.end();
  });
  const clock = fakeClock();
  const error = await failure(client({ clock }).request({ url }));
  expect(error).toMatchObject({ status: 429, retryable: true, retryAfterMs: 3_600_000 });
  expect(clock.slept).toEqual([]);
  expect(seen).toHaveLength(1);
});

test('an answer over the cap is refused, announced or not', async () => {
  const { url } = await serve((request, response) => {
    if (request.url === '/announced') response.setHeader('content-length', 1000);
    response.end('x'.repeat(1000));
  });
  for (const path of ['/announced', '/chunked']) {
    expect(await failure(client().request({ url: url + path, maxBytes: 999 }))).toMatchObject({
      code: 'TooLarge',
      retryable: false,
    });
  }
  expect((await client().request({ url, maxBytes: 1000 })).bytes).toHaveLength(1000);
});

test('a gzip answer counts decoded, so that a small bomb does not fit', async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  const { url } = await serve((_request, response) => {
    response.setHeader('content-encoding', 'gzip');
    response.end(bomb);
  });
  expect((await failure(client().request({ url, maxBytes: 1_000_000 }))).code).toBe('TooLarge');
  expect((await client().request({ url, maxBytes: 10_000_000 })).bytes).toHaveLength(10_000_000);
});

test('credentials do not follow a redirect to another origin', async () => {
  const other = await serve((_request, response) => void response.end('there'));
  const { url } = await serve((_request, response) => {
    response.writeHead(302, { location: `${other.url}/moved` });
    response.end();
  });
  const answer = await client().request({
    url,
    headers: { 'PRIVATE-TOKEN': 'glpat-secret', accept: 'text/plain' },
  });
  expect(answer.text()).toBe('there');
  expect(other.seen[0]?.headers['private-token']).toBeUndefined();
  expect(other.seen[0]?.headers['accept']).toBe('text/plain');
});

test('credentials follow a redirect within the origin', async () => {
  const { url, seen } = await serve((request, response) => {
    if (request.url === '/') response.writeHead(301, { location: '/moved' });
    response.end();
  });
  await client().request({ url, headers: { 'private-token': 'glpat-secret' } });
  expect(seen[1]?.headers['private-token']).toBe('glpat-secret');
});

test('a redirected POST is refused', async () => {
  const { url, seen } = await serve((_request, response) => {
    response.writeHead(307, { location: '/again' });
    response.end();
  });
  expect((await failure(client().request({ url, method: 'POST' }))).code).toBe('RefusedRedirect');
  expect(seen).toHaveLength(1);
});

test('an error names method, URL and answer, without any secret', async () => {
  const { url } = await serve((request, response) => {
    response.statusCode = 403;
    response.end(`no access for ${request.headers['private-token']}`);
  });
  const redactor = createRedactor(['glpat-0123456789']);
  const error = await failure(
    client({ redactor }).request({
      url: `${url}/a?private_token=abc&b=1`,
      headers: { 'private-token': 'glpat-0123456789' },
    }),
  );
  expect(error.message).toBe(
    `GET ${url}/a?private_token=[redacted]&b=1: answered 403: no access for [redacted]`,
  );
  expect(error).toMatchObject({ status: 403, retryable: false });
});

test('a refused literal address is not connected to, also behind a redirect', async () => {
  const { url } = await serve((_request, response) => {
    response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' });
    response.end();
  });
  const careful = client();
  expect((await failure(careful.request({ url }))).code).toBe('RefusedAddress');
  expect((await failure(careful.request({ url: 'http://[fe80::1]/' }))).code).toBe('RefusedAddress');
});

test("the caller's abort rejects with the caller's reason", async () => {
  const { url } = await serve(() => {});
  const controller = new AbortController();
  const pending = client().request({ url, signal: controller.signal });
  controller.abort(new Error('run cancelled'));
  await expect(pending).rejects.toThrow('run cancelled');
});

test('a server that never answers is a retryable timeout', async () => {
  const { url } = await serve(() => {});
  const error = await failure(client().request({ url, timeoutMs: 50, retry: false }));
  expect(error).toMatchObject({ code: 'Timeout', retryable: true });
});

test('a stream that breaks off in the middle throws after the chunks that came', async () => {
  const { url } = await serve((_request, response) => {
    response.write('first');
    setTimeout(() => response.destroy(), 50);
  });
  const { body } = await client().stream({ url });
  let text = '';
  const error = await failure(
    (async () => {
      for await (const chunk of body) text += Buffer.from(chunk).toString();
    })(),
  );
  expect(text).toBe('first');
  expect(error).toMatchObject({ code: 'Interrupted', retryable: true });
});

test('a silent stream ends at its idle deadline, a slow reader does not', async () => {
  const { url } = await serve((request, response) => {
    response.write('first');
    if (request.url === '/slow-reader') setTimeout(() => response.end('second'), 10);
  });
  const silent = await client().stream({ url, timeoutMs: 100 });
  const error = await failure(drain(silent.body));
  expect(error.code).toBe('Timeout');

  const slow = await client().stream({ url: `${url}/slow-reader`, timeoutMs: 200 });
  const parts: string[] = [];
  for await (const chunk of slow.body) {
    parts.push(Buffer.from(chunk).toString());
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  expect(parts.join('')).toBe('firstsecond');
});

test('a refused connection says so and is retryable', async () => {
  const { url } = await serve(() => {});
  const port = new URL(url).port;
  await cleanups.pop()?.();
  const error = await failure(client({ clock: fakeClock() }).request({ url: `http://127.0.0.1:${port}/` }));
  expect(error).toMatchObject({ code: 'Connection', retryable: true });
  expect(error.message).toContain('ECONNREFUSED');
});

test('a 401 carries what the server wants to be shown', async () => {
  const challenge = 'Bearer realm="http://127.0.0.1:9/token",service="charts"';
  const { url } = await serve((_request, response) =>
    response.writeHead(401, { 'www-authenticate': challenge }).end(),
  );
  expect((await failure(client().request({ url }))).challenge).toBe(challenge);
});
