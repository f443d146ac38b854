import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createHttpClient, type HttpClient, HttpError } from './client.ts';
import type { Resolve } from './dispatcher.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, seen };
}

function client(resolve?: Resolve): HttpClient {
  const made = createHttpClient({ limits: { retry: { attempts: 1 } }, ...(resolve && { resolve }) });
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

/** A name server whose answers change from question to question; the last one stays. */
function nameServer(answers: Readonly<Record<string, readonly string[]>>): Resolve & { asked: string[] } {
  const asked: string[] = [];
  const resolve: Resolve = (hostname, _options, callback) => {
    const addresses = answers[hostname] ?? [];
    const address = addresses[asked.filter((name) => name === hostname).length] ?? addresses.at(-1);
    asked.push(hostname);
    const found = address === undefined ? [] : [{ address, family: address.includes(':') ? 6 : 4 }];
    setImmediate(() => callback(null, found));
  };
  return Object.assign(resolve, { asked });
}

describe('a name', () => {
  test('that turns to another address between two questions is connected to where it was looked at', async () => {
    const { port, seen } = await serve((_request, response) => void response.end('here'));
    // 127.0.0.2 is this machine as well, where nobody listens.
    const resolve = nameServer({ 'turning.test': ['127.0.0.1', '127.0.0.2'] });
    const answer = await client(resolve).request({ url: `http://turning.test:${port}/` });
    expect(answer.text()).toBe('here');
    expect(resolve.asked).toEqual(['turning.test']);
    expect(seen[0]?.socket.localAddress).toBe('127.0.0.1');
  });

  test('is looked at again for each connection', async () => {
    const { port, seen } = await serve((_request, response) => {
      response.setHeader('connection', 'close');
      response.end();
    });
    const resolve = nameServer({ 'rebinding.test': ['127.0.0.1', '169.254.169.254'] });
    const http = client(resolve);
    const url = `http://rebinding.test:${port}/`;
    await http.request({ url });
    expect(await failure(http.request({ url }))).toMatchObject({
      code: 'RefusedAddress',
      retryable: false,
      message: expect.stringContaining('rebinding.test: address 169.254.169.254 may not be reached'),
    });
    expect(seen).toHaveLength(1);
  });

  test.each([
    ['10.0.0.1', 'private'],
    ['127.0.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['64:ff9b::7f00:1', 'loopback'],
  ])('from data that resolves to %s is refused as %s', async (address, what) => {
    const resolve = nameServer({ 'inside.test': [address] });
    const error = await failure(client(resolve).request({ url: 'https://inside.test/', within: {} }));
    expect(error).toMatchObject({ code: 'RefusedAddress', retryable: false });
    expect(error.message).toContain(`${address} may not be reached: ${what}`);
  });

  test('that is allowed to lie inside is reached', async () => {
    const { port } = await serve((_request, response) => void response.end('inside'));
    const resolve = nameServer({ 'inside.test': ['127.0.0.1'] });
    const below = [`http://inside.test:${port}/files/`];
    const http = client(resolve);
    const url = `http://inside.test:${port}/files/a`;
    expect((await http.request({ url, within: { below, reach: 'Loopback' } })).text()).toBe('inside');
    // Neither is its open connection lent to who does not reach so far.
    expect((await failure(http.request({ url, within: { below } }))).code).toBe('RefusedAddress');
  });

  test('that resolves to nothing says so', async () => {
    const error = await failure(client(nameServer({})).request({ url: 'http://nothing.test/' }));
    expect(error.message).toContain('nothing.test: resolves to nothing');
  });
});

describe('a redirect', () => {
  const to = (location: string) =>
    serve((_request, response) => void response.writeHead(302, { location }).end());

  test.each([
    ['an address of nobody', 'http://169.254.169.254/latest/meta-data', 'RefusedAddress'],
    ['that address in decimal', 'http://2852039166/', 'RefusedAddress'],
    ['that address in mapped IPv6', 'http://[::ffff:169.254.169.254]/', 'RefusedAddress'],
    ['a URL with a user', 'http://me:pw@127.0.0.1:1/', 'RefusedRedirect'],
    ['another protocol', 'ftp://127.0.0.1/', 'RefusedRedirect'],
    ['a file', 'file:///etc/passwd', 'RefusedRedirect'],
    ['what is no URL', 'http://[/', 'RefusedRedirect'],
  ])('to %s is refused: %s', async (_what, location, code) => {
    const { url } = await to(location);
    const error = await failure(client().request({ url }));
    expect(error).toMatchObject({ code, retryable: false });
    expect(error.message).not.toContain('pw');
  });

  test('is followed three times and not once more', async () => {
    const { url, seen } = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` });
      response.end('there');
    });
    expect((await client().request({ url: `${url}/3` })).text()).toBe('there');
    expect(seen).toHaveLength(4);
    const error = await failure(client().request({ url: `${url}/4` }));
    expect(error).toMatchObject({ code: 'RefusedRedirect', message: expect.stringContaining('more than 3') });
    expect(seen).toHaveLength(8);
  });

  test('does not get its credentials back where it returns to the first origin', async () => {
    const far = await serve(
      (_request, response) => void response.writeHead(302, { location: `${near.url}/end` }).end(),
    );
    const near = await serve((request, response) => {
      if (request.url === '/') response.writeHead(302, { location: far.url });
      response.end();
    });
    await client().request({
      url: near.url,
      headers: {
        'private-token': 'glpat-secret',
        authorization: 'Bearer secret',
        cookie: 'a=b',
        accept: 'text/plain',
      },
    });
    expect(near.seen[0]?.headers['private-token']).toBe('glpat-secret');
    for (const request of [far.seen[0], near.seen[1]]) {
      expect(request?.headers['accept']).toBe('text/plain');
      expect(JSON.stringify(request?.headers)).not.toMatch(/secret|cookie/);
    }
  });

  test('leads no further inside than where it came from', async () => {
    const inner = await serve((_request, response) => void response.end('inner'));
    const { port } = await to(`http://inner.test:${inner.port}/`);
    // The first host is told to be a public one; its connection ends on this machine through a proxy all the same.
    const proxy = await serve(
      (_request, response) =>
        void response.writeHead(302, { location: `http://inner.test:${inner.port}/` }).end(),
    );
    const resolve = nameServer({ 'inner.test': ['127.0.0.1'] });
    const outer = createHttpClient({
      resolve,
      proxies: (url) => (url.hostname === 'outer.test' ? proxy.url : undefined),
      limits: { retry: { attempts: 1 } },
    });
    cleanups.push(() => outer.close());
    expect(await failure(outer.request({ url: 'http://outer.test/' }))).toMatchObject({
      code: 'RefusedAddress',
      message: expect.stringContaining('inner.test: address 127.0.0.1 may not be reached: loopback'),
    });
    expect(inner.seen).toHaveLength(0);

    const near = client(nameServer({ 'near.test': ['127.0.0.1'], 'inner.test': ['127.0.0.1'] }));
    expect((await near.request({ url: `http://near.test:${port}/` })).text()).toBe('inner');
  });

  test('of a URL from data stays below its folder', async () => {
    const { url } = await serve((request, response) => {
      const location = {
        '/files/out': '/secrets/a',
        '/files/in': '/files/a',
        '/files/host': 'http://127.0.0.2:1/files/a',
      };
      const next = Object.entries(location).find(([path]) => path === request.url)?.[1];
      if (next !== undefined) response.writeHead(302, { location: next });
      response.end('a');
    });
    const within = { below: [`${url}/files/`], reach: 'Loopback' } as const;
    expect((await client().request({ url: `${url}/files/in`, within })).text()).toBe('a');
    for (const path of ['out', 'host'])
      expect(await failure(client().request({ url: `${url}/files/${path}`, within }))).toMatchObject({
        code: 'RefusedRedirect',
        message: expect.stringContaining('does not lie below'),
      });
  });
});

test('a URL from data that lies outside is not asked for, and shown without its password', async () => {
  const { url, seen } = await serve((_request, response) => void response.end());
  const within = { below: [`${url}/files/`], reach: 'Loopback' } as const;
  const error = await failure(client().request({ url: url.replace('//', '//me:pw-1@'), within }));
  expect(error).toMatchObject({ code: 'RefusedAddress', retryable: false });
  expect(`${error.message} ${error.url}`).not.toContain('pw-1');
  expect((await failure(client().stream({ url: 'no url', within }))).message).toContain('holds spaces');
  expect(seen).toHaveLength(0);
});
