import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { toolToken } from '../settings/tokens.ts';
import { createHttpClient, HttpError } from './client.ts';
import { createGitLabApi } from './gitlab.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const TOKEN = 'glpat-canary-0001';

/** GitLab's client before a server that answers as it likes; pauses are written down, not waited for. */
async function stage(
  handler: (request: IncomingMessage, response: ServerResponse, count: number) => void,
  limits: { readonly maxBytes?: number; readonly timeoutMs?: number } = {},
) {
  let requests = 0;
  const slept: number[] = [];
  const server = createServer((request, response) => {
    requests += 1;
    handler(request, response, requests);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const clock = {
    now: () => Date.parse('2026-01-01T00:00:00Z'),
    random: () => 1,
    sleep: async (ms: number) => void slept.push(ms),
  };
  const http = createHttpClient({ clock, limits });
  cleanups.push(
    () => http.close(),
    () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  );
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const api = createGitLabApi({ http, baseUrl, token: toolToken(TOKEN) });
  return {
    slept,
    requests: () => requests,
    list: async () => {
      let rows = 0;
      for await (const page of api.pages('projects/1/things')) rows += page.length;
      return rows;
    },
    one: () => api.resources().mergeRequests.show('group/app', 1),
  };
}

const failure = async (promise: Promise<unknown>): Promise<HttpError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HttpError);
  expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain(TOKEN);
  return error as HttpError;
};

describe('a list and a single object', () => {
  const both = ['list', 'one'] as const;

  test.each(both.flatMap((what) => [401, 403, 404].map((status) => [what, status] as const)))(
    '%s: %i is told apart, with what GitLab said, and not asked again',
    async (what, status) => {
      const staged = await stage((_request, response) => {
        response
          .writeHead(status, { 'content-type': 'application/json' })
          .end('{"message":"as GitLab says it"}');
      });
      const error = await failure(staged[what]());
      expect(error).toMatchObject({ status, retryable: false });
      expect(error.message).toContain(`answered ${status}: {"message":"as GitLab says it"}`);
      expect(staged.requests()).toBe(1);
    },
  );

  test.each(both.flatMap((what) => [429, 500, 502, 503].map((status) => [what, status] as const)))(
    '%s: %i for ever is asked four times',
    async (what, status) => {
      const staged = await stage((_request, response) => void response.writeHead(status).end());
      expect(await failure(staged[what]())).toMatchObject({ status, retryable: true });
      expect(staged.requests()).toBe(4);
      expect(staged.slept).toEqual([500, 1000, 2000]);
    },
  );

  test.each([
    ['seconds', '7', 7000],
    ['a date', 'Thu, 01 Jan 2026 00:00:09 GMT', 9000],
    ['a date that is over', 'Wed, 31 Dec 2025 23:00:00 GMT', 500],
    ['something else', 'soon', 500],
    ['a negative number', '-5', 500],
  ])('wait as Retry-After says: %s', async (_what, header, pause) => {
    const staged = await stage((_request, response, count) => {
      if (count === 1) response.writeHead(429, { 'retry-after': header });
      response.end('[{"id":1}]');
    });
    expect(await staged.list()).toBe(1);
    expect(staged.slept).toEqual([pause]);
  });

  test.each([
    [
      'a login page',
      'text/html',
      '<!DOCTYPE html><title>Sign in</title>',
      'a page, such as a login of a proxy',
    ],
    ['a login page called JSON', 'application/json', '\n <html>', 'a page, such as a login of a proxy'],
    [
      'a list that is cut off',
      'application/json',
      '[{"id":1},{"id"',
      'it is cut off or damaged (15 characters)',
    ],
    ['words', 'text/plain', 'It works!', 'not JSON but text/plain'],
    ['bytes', 'application/octet-stream', '\u0000\u0001', 'not JSON but application/octet-stream'],
  ])('%s instead of JSON is named, and asked once', async (_what, type, body, said) => {
    for (const what of both) {
      const staged = await stage(
        (_request, response) => void response.setHeader('content-type', type).end(body),
      );
      const error = await failure(staged[what]());
      expect(error).toMatchObject({ code: 'NotJson', retryable: false });
      expect(error.message).toContain(said);
      expect(staged.requests()).toBe(1);
    }
  });

  test('that break off in the middle are asked again', async () => {
    const staged = await stage((_request, response, count) => {
      if (count > 1) return void response.end('[{"id":1}]');
      response.setHeader('content-length', 100);
      response.write('[{"id"', () => response.destroy());
    });
    expect(await staged.list()).toBe(1);
    expect(staged.requests()).toBe(2);
  });

  test('that do not end are refused at the cap, and the connection is closed', async () => {
    let written = 0;
    const closed = Promise.withResolvers<void>();
    const chunk = Buffer.alloc(256 * 1024, ' ');
    const staged = await stage(
      (_request, response) => {
        response.on('close', closed.resolve);
        const more = (): void => {
          if (response.destroyed) return;
          written += chunk.length;
          response.write(chunk, more);
        };
        more();
      },
      { maxBytes: 1024 * 1024 },
    );
    const error = await failure(staged.list());
    expect(error).toMatchObject({ code: 'TooLarge', retryable: false });
    expect(error.message).toContain('larger than 1048576 bytes');
    await closed.promise;
    // The cap, and what lay in the sockets' buffers.
    expect(written).toBeLessThan(64 * 1024 * 1024);
    expect(staged.requests()).toBe(1);
  });

  test('that come a byte at a time end with their time', async () => {
    const staged = await stage(
      (_request, response) => {
        response.write('[');
        const timer = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(timer));
      },
      { timeoutMs: 200 },
    );
    expect(await failure(staged.list())).toMatchObject({ code: 'Timeout', retryable: true });
    expect(staged.requests()).toBe(4);
  });
});
