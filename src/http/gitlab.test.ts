import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toolToken } from '../settings/tokens.ts';
import { createHttpClient, type HttpClient } from './client.ts';
import { createGitLabApi } from './gitlab.ts';

let http: HttpClient;
let stop: () => Promise<void>;
let url: string;
let seen: string[];
let pagesOf: (path: string) => { headers: Record<string, string>; body: unknown };

beforeEach(async () => {
  seen = [];
  http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  const server = createServer((request, response) => {
    seen.push(request.url ?? '');
    const { headers, body } = pagesOf(request.url ?? '');
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stop = () => new Promise((resolve) => server.close(() => resolve()));
});
afterEach(async () => {
  await http.close();
  await stop();
});

const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

async function count(path = 'projects/1/things'): Promise<number> {
  const api = createGitLabApi({ http, baseUrl: `${url}/`, token: toolToken('glpat-x') });
  let total = 0;
  for await (const page of api.pages(path)) total += page.length;
  return total;
}

test('BR-02: a page that carries a Link only leads on, by its URL unchanged', async () => {
  // Encoded in a way that nobody would choose, so that taking it apart and building it again shows.
  const next = '/api/v4/projects/1/things?cursor=a%2fb%3D%3d&per_page=100&x[]=%7E1';
  pagesOf = (path) =>
    path.includes('cursor')
      ? { headers: {}, body: rows(30) }
      : { headers: { link: `<${url}/other>; rel="first", <${url}${next}>; rel="next"` }, body: rows(100) };
  expect(await count()).toBe(130);
  expect(seen).toEqual(['/api/v4/projects/1/things?per_page=100', next]);
});

test('BR-01: a page number leads on where there is no Link, without any totals, in as few requests as pages', async () => {
  pagesOf = (path) => {
    const page = Number(new URL(path, url).searchParams.get('page') ?? 1);
    return { headers: { 'x-next-page': page < 3 ? String(page + 1) : '' }, body: rows(page < 3 ? 100 : 7) };
  };
  expect(await count()).toBe(207);
  expect(seen).toHaveLength(3);
});

test('BR-02: a Link to another origin is not followed: the page number is, or the mistake is named', async () => {
  pagesOf = (path) =>
    path.includes('page=2')
      ? { headers: {}, body: rows(1) }
      : {
          headers: { link: '<https://other.example/next>; rel="next"', 'x-next-page': '2' },
          body: rows(100),
        };
  expect(await count()).toBe(101);
  pagesOf = () => ({ headers: { link: '<https://other.example/next>; rel="next"' }, body: rows(100) });
  await expect(count()).rejects.toThrow(
    'its next page is at another origin (https://other.example); correct the GitLab URL',
  );
});

test.each([
  ['another host', 'https://other.example/next', 'https://other.example'],
  ['another host without a scheme', '//other.example/next', 'http://other.example'],
  ['another scheme', 'ftp://127.0.0.1/next', 'ftp://127.0.0.1'],
  ['another port', 'http://127.0.0.1:1/next', 'http://127.0.0.1:1'],
  ['the host as a user', 'http://127.0.0.1@other.example/next', 'http://other.example'],
])('BR-02: a Link to %s ends the list with its name', async (_what, link, origin) => {
  pagesOf = () => ({ headers: { link: `<${link}>; rel="next"` }, body: rows(100) });
  await expect(count()).rejects.toThrow(
    `its next page is at another origin (${origin}); correct the GitLab URL`,
  );
  expect(seen).toHaveLength(1);
});

test('a Link without a host leads on, one that is no URL is named', async () => {
  pagesOf = (path) =>
    path.startsWith('/more')
      ? { headers: {}, body: rows(2) }
      : { headers: { link: '</more?cursor=a>; rel="next"' }, body: rows(1) };
  expect(await count()).toBe(3);
  pagesOf = () => ({ headers: { link: '<http://[>; rel="next"' }, body: rows(1) });
  await expect(count()).rejects.toThrow('its link to the next page is no URL');
});

test('a list that leads back to itself ends with an error', async () => {
  pagesOf = () => ({
    headers: { link: `<${url}/api/v4/projects/1/things?per_page=100>; rel="next"` },
    body: rows(1),
  });
  await expect(count()).rejects.toThrow('the list does not end');
});

test('an answer that is no list names what was asked', async () => {
  pagesOf = () => ({ headers: {}, body: { message: 'hello' } });
  await expect(count()).rejects.toThrow(`GET ${url}/api/v4/projects/1/things: expected a list`);
});
