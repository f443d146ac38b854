import { afterEach, describe, expect, it } from 'vitest';
import { type ChartServerOptions, startChartServer } from '../../test/fakes/charts/server.ts';
import { packChart } from '../delivery/chart/pack.ts';
import { ChartUnavailableError } from '../delivery/port.ts';
import { createHttpClient } from '../http/client.ts';
import { type ChartSourceOptions, createChartSource } from './source.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const offered = (name: string, version: string) => ({
  name,
  version,
  bytes: packChart(name, [
    { path: 'Chart.yaml', bytes: Buffer.from(`name: ${name}\nversion: ${version}\n`) },
  ]),
});
const CHARTS = [
  offered('web', '1.2.0'),
  offered('web', '1.10.0'),
  offered('web', '2.0.0+b.1'),
  offered('db', '0.1.0'),
];

async function serve(options: Partial<ChartServerOptions> = {}) {
  const server = await startChartServer({ charts: CHARTS, ...options });
  cleanups.push(() => server.close());
  return server;
}

function source(below: readonly string[], options: Partial<ChartSourceOptions> = {}) {
  const http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  cleanups.push(() => http.close());
  const plainHttp = below.map((url) => new URL(url).host);
  return createChartSource({ http, within: { below, reach: 'Loopback' }, plainHttp, ...options });
}

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ChartUnavailableError);
  return error instanceof Error ? error.message : '';
};

describe.each(['index', 'registry'] as const)('a chart of an %s', (kind) => {
  const repositoryOf = (server: Awaited<ReturnType<typeof serve>>) =>
    kind === 'index' ? server.url : server.oci;

  it.each([
    ['1.2.0', '1.2.0', 0],
    ['^1', '1.10.0', 1],
    ['2.0.0+b.1', '2.0.0+b.1', 2],
    ['*', '2.0.0+b.1', 2],
  ])('is fetched by the version %s', async (version, picked, at) => {
    const server = await serve({ pageSize: 1 });
    const archive = await source([server.url]).fetch({
      repository: repositoryOf(server),
      name: 'web',
      version,
    });
    expect(archive.reference.version).toBe(picked);
    expect(Buffer.from(archive.bytes).equals(CHARTS[at]?.bytes ?? Buffer.alloc(0))).toBe(true);
    expect(archive.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(server.faults).toEqual([]);
  });

  it('whose digest is another one is refused', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const server = await serve({ charts: [{ ...offered('web', '1.2.0'), digest }] });
    const fetching = source([server.url]).fetch({
      repository: repositoryOf(server),
      name: 'web',
      version: '1.2.0',
    });
    expect(await refusal(fetching)).toMatch(
      /^The chart web 1\.2\.0 is not what its repository says: its SHA-256 is .*\.$/,
    );
  });

  it.each([
    ['that is not there', 'nothing', '1.2.0', /^The chart nothing 1\.2\.0 cannot be fetched: /],
    ['whose version is not there', 'web', '7.0.0', /^The chart web 7\.0\.0 cannot be fetched: /],
    ['of which no version fits', 'web', '^7', /^The chart web \^7 cannot be fetched: .*none that fits\.$/],
  ])('%s is one sentence', async (_what, name, version, words) => {
    const server = await serve();
    const fetching = source([server.url]).fetch({ repository: repositoryOf(server), name, version });
    expect(await refusal(fetching)).toMatch(words);
  });

  it('that is larger than what is read is refused', async () => {
    const server = await serve();
    const fetching = source([server.url], { maxBytes: 20 }).fetch({
      repository: repositoryOf(server),
      name: 'web',
      version: '1.2.0',
    });
    expect(await refusal(fetching)).toMatch(/larger than 20 bytes|more than the 20 that are read/);
  });

  it('of a repository with a login is fetched with it, and refused without', async () => {
    const login = { user: 'reader', password: 'pass-canary-7' };
    const server = await serve({ login });
    const reference = { repository: repositoryOf(server), name: 'web', version: '1.2.0' };
    const archive = await source([server.url], { login: () => login }).fetch(reference);
    expect(archive.reference.version).toBe('1.2.0');
    const words = await refusal(source([server.url]).fetch(reference));
    expect(words).toMatch(/answered 401/);
    expect(words).not.toContain('canary');
  });

  it('of an address that is not allowed is refused before anything is sent there', async () => {
    const server = await serve();
    const fetching = source(['http://127.0.0.1:9/']).fetch({
      repository: repositoryOf(server),
      name: 'web',
      version: '1.2.0',
    });
    expect(await refusal(fetching)).toMatch(/cannot be fetched: /);
    expect(server.requests).toEqual([]);
  });

  it('on this machine is refused by default, like every private address', async () => {
    const server = await serve();
    const fetching = source([server.url], { within: {} }).fetch({
      repository: repositoryOf(server),
      name: 'web',
      version: '1.2.0',
    });
    expect(await refusal(fetching)).toMatch(/http:\/\/ is not allowed/);
    expect(server.requests).toEqual([]);
  });
});

describe('an index', () => {
  it('may send on to a storage of files, which never sees its password', async () => {
    const login = { user: 'reader', password: 'secret' };
    const storage = await serve();
    const server = await serve({ login, storage: storage.url });
    const archive = await source([server.url, storage.url], { login: () => login }).fetch({
      repository: server.url,
      name: 'web',
      version: '1.2.0',
    });
    expect(archive.reference.version).toBe('1.2.0');
    expect(storage.requests).toEqual([{ line: 'GET /web-1.2.0.tgz', authorization: undefined }]);
  });

  it('may name another host for its files, which never sees its password', async () => {
    const login = { user: 'reader', password: 'secret' };
    const other = await serve();
    const index = `entries:\n  web:\n  - version: 1.2.0\n    urls: [${other.url}web-1.2.0.tgz]\n`;
    const server = await serve({ login, index });
    await source([server.url, other.url], { login: () => login }).fetch({
      repository: server.url,
      name: 'web',
      version: '1.2.0',
    });
    expect(other.requests).toEqual([{ line: 'GET /web-1.2.0.tgz', authorization: undefined }]);
  });

  it('that names a file elsewhere is not followed there unless that is allowed', async () => {
    const other = await serve();
    const index = `entries:\n  web:\n  - version: 1.2.0\n    urls: [${other.url}web-1.2.0.tgz]\n`;
    const server = await serve({ index });
    const fetching = source([server.url]).fetch({ repository: server.url, name: 'web', version: '1.2.0' });
    expect(await refusal(fetching)).toMatch(/does not lie below/);
    expect(other.requests).toEqual([]);
  });

  it.each([
    ['JSON', '{"entries":{"web":[{"version":"1.2.0","urls":["web-1.2.0.tgz"]}]}}'],
    [
      'lists further in',
      'entries:\n    "web":\n      - version: 1.2.0\n        urls:\n          - web-1.2.0.tgz\n    x: []\n',
    ],
    [
      'CRLF',
      'apiVersion: v1\r\nentries:\r\n  a:\r\n  - version: 1.0.0\r\n  web:\r\n  - version: 1.2.0\r\n    urls:\r\n    - web-1.2.0.tgz\r\n',
    ],
    [
      'a damaged entry beside',
      'entries:\n  web:\n  - nothing\n  - version: 1.2.0\n    urls:\n    - web-1.2.0.tgz\n',
    ],
    [
      'a chart of that name in a description',
      'entries:\n  a:\n  - description: |\n      web:\n      - x\n    version: 9.9.9\n  web:\n  - version: 1.2.0\n    urls:\n    - web-1.2.0.tgz\n',
    ],
  ])('with %s is read', async (_what, index) => {
    const server = await serve({ index });
    const archive = await source([server.url]).fetch({
      repository: server.url.slice(0, -1),
      name: 'web',
      version: '1.2.0',
    });
    expect(archive.reference.version).toBe('1.2.0');
  });

  it.each([
    ['a page of a login', '<html>\n<body>log in</body></html>'],
    ['nothing', ''],
    ['one text where the entries should be', 'entries:\n  web: none\n'],
  ])('that is %s is one sentence', async (_what, index) => {
    const server = await serve({ index });
    const fetching = source([server.url]).fetch({ repository: server.url, name: 'web', version: '1.2.0' });
    expect(await refusal(fetching)).toMatch(/^The chart web 1\.2\.0 cannot be fetched: .*\.$/);
  });

  it('of tens of megabytes is read as it comes, and dropped but for one chart', async () => {
    const block = `  other-NN:\n${'  - version: 1.0.0\n    description: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n    urls:\n    - a.tgz\n'.repeat(200)}`;
    const many = Array.from({ length: 1000 }, (_one, index) => block.replace('NN', String(index))).join('');
    const server = await serve({
      index: `entries:\n${many}  web:\n  - version: 1.2.0\n    urls:\n    - web-1.2.0.tgz\n`,
    });
    const archive = await source([server.url]).fetch({
      repository: server.url,
      name: 'web',
      version: '1.2.0',
    });
    expect(archive.reference.version).toBe('1.2.0');
  });
});

it.each(['git@example.org:a/b.git', 'file:///etc', 'ftp://example.org/'])(
  '%s is no repository of charts',
  async (repository) => {
    expect(await refusal(source([]).fetch({ repository, name: 'web', version: '1.0.0' }))).toMatch(
      /is neither an https:\/\/ nor an oci:\/\/ address\.$/,
    );
  },
);
