import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  aRunObject,
  BUILD_LABEL,
  callTool,
  konfluxAt,
  NAMESPACE,
  readStream,
  SHA,
  scope,
  TEST_LABEL,
  TOKEN,
} from '../../../test/builders/konflux.ts';
import { type FakeKubeArchive, startKubeArchive } from '../../../test/fakes/kubearchive/server.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { konfluxTools } from './tools.ts';

// The stand-in answers lists as the API server does, so a second one is the cluster here; test/sources has a real one.
let archive: FakeKubeArchive;
let cluster: FakeKubeArchive;
let http: HttpClient;
beforeEach(async () => {
  [archive, cluster] = await Promise.all([startKubeArchive(), startKubeArchive()]);
  for (const fake of [archive, cluster]) fake.state.grant(TOKEN, NAMESPACE);
  http = createHttpClient({ limits: { retry: { attempts: 2, baseMs: 1 } } });
});
afterEach(async () => {
  expect([...archive.violations, ...cluster.violations]).toEqual([]);
  await Promise.all([archive.stop(), cluster.stop(), http.close()]);
});

const tools = () => konfluxTools(konfluxAt(http, cluster.url, archive.url), scope);
const list = (args: Readonly<Record<string, unknown>> = { sha: SHA }, kind = 'pipelineruns') =>
  callTool(tools(), `konflux_list_${kind}`, args);
const Item = z.object({ metadata: z.object({ uid: z.string(), name: z.string() }) });
const read = async (output = list()) => {
  const { text, incomplete } = await readStream(await output);
  const items = text
    .split('\n')
    .slice(0, -1)
    .map((line) => Item.parse(JSON.parse(line)).metadata);
  return { uids: items.map(({ uid }) => uid), names: items.map(({ name }) => name), incomplete };
};
const keepMany = (fake: FakeKubeArchive, count: number, prefix: string) => {
  for (let index = 0; index < count; index += 1) fake.state.keep(aRunObject(`${prefix}-${index}`));
};
const foreign = { labels: { [BUILD_LABEL]: 'f'.repeat(40) } };

describe('a list of pages (BR-60)', () => {
  beforeEach(() => {
    keepMany(archive, 1020, 'run');
    for (let index = 0; index < 30; index += 1)
      cluster.state.keep(aRunObject(index < 10 ? `run-${index}` : `live-${index}`));
    for (const fake of [archive, cluster]) fake.state.keep(aRunObject('foreign', foreign));
  });

  it('BR-60: has each of 1040 objects once and none of another commit, with the selector in every request', async () => {
    const { uids, incomplete } = await read();
    expect(incomplete).toBeUndefined();
    expect(uids).toHaveLength(1040);
    expect(new Set(uids).size).toBe(1040);
    expect(uids).not.toContain('uid-foreign');
    const builds = archive.requests.filter(({ query }) => query['labelSelector'] === `${BUILD_LABEL}=${SHA}`);
    expect(builds).toHaveLength(3);
    expect(builds.map(({ query }) => query['continue'] !== undefined)).toEqual([false, true, true]);
    expect(archive.requests.every(({ query, gzip }) => query['labelSelector']?.endsWith(SHA) && gzip)).toBe(
      true,
    );
    expect(new Set(archive.requests.map(({ query }) => query['limit']))).toEqual(new Set(['500']));
  });

  it('BR-60: whose third page breaks off keeps what has come, and says what is missing', async () => {
    archive.faults.breakOffAfter = ({ number }) => (number === 3 || number === 4 ? 7 : undefined);
    const { uids, incomplete } = await read();
    // 1,007 of KubeArchive, and 30 of the cluster, 10 of which stand on the lost rest of the page.
    expect(uids).toHaveLength(1037);
    expect(incomplete).toMatch(
      /^The list of KubeArchive broke off after 1007 items \(.*\); those after them are missing\.$/,
    );
  });

  it('that breaks off once is read on, and nothing comes twice', async () => {
    archive.faults.breakOffAfter = ({ number }) => (number === 2 ? 300 : undefined);
    const { uids, incomplete } = await read();
    expect(incomplete).toBeUndefined();
    expect(new Set(uids).size).toBe(1040);
    expect(uids).toHaveLength(1040);
  });

  it.each(['endsWithToken', 'metadataLast'] as const)(
    'of a server that differs (%s) is the same',
    async (how) => {
      archive[how] = true;
      expect((await read()).uids).toHaveLength(1040);
    },
  );
});

describe('the two sources', () => {
  it('give builds and tests, each object once, the newer state of what both have', async () => {
    archive.state.keep(
      aRunObject('both', { uid: '1', status: { from: 'archive' } }),
      aRunObject('old', { uid: '2' }),
      aRunObject('test', { uid: '3', labels: { [TEST_LABEL]: SHA } }),
      aRunObject('task', { uid: '4', kind: 'TaskRun' }),
    );
    cluster.state.keep(
      aRunObject('both', {
        uid: '1',
        labels: { [BUILD_LABEL]: SHA, [TEST_LABEL]: SHA },
        status: { from: 'cluster' },
      }),
    );
    const { text } = await readStream(await list());
    expect((await read()).uids).toEqual(['1', '2', '3']);
    expect(text).toContain('"from":"cluster"');
    expect(text).not.toContain('"from":"archive"');
    expect((await read(list({ sha: SHA }, 'taskruns'))).uids).toEqual(['4']);
  });

  it.each([
    ['KubeArchive', () => archive, () => cluster],
    ['The cluster', () => cluster, () => archive],
  ])('give what the other has when %s is down, and the gap is named', async (name, down, up) => {
    up().state.keep(aRunObject('one'));
    down().faults.status = () => 503;
    const { names, incomplete } = await read();
    expect(names).toEqual(['one']);
    expect(incomplete).toMatch(new RegExp(`^${name} gave nothing \\(GET http.* answered 503: .*\\)\\.$`));
    // The second list of a source that is silent is not tried.
    expect(down().requests).toHaveLength(2);
  });

  it('that are both down are an error that names both', async () => {
    for (const fake of [archive, cluster]) fake.faults.status = () => 500;
    const output = await list();
    expect(output).toMatchObject({ kind: 'Error' });
    expect(JSON.stringify(output)).toMatch(
      /The cluster gave nothing .* KubeArchive gave nothing .*go on without/,
    );
  });

  it('may be one alone', async () => {
    cluster.state.keep(aRunObject('one'));
    const alone = konfluxTools(konfluxAt(http, cluster.url), scope);
    expect((await read(callTool(alone, 'konflux_list_pipelineruns', { sha: SHA }))).names).toEqual(['one']);
    expect(archive.requests).toEqual([]);
  });

  it('that have nothing say so; none of what could be read is another thing', async () => {
    expect(await list()).toMatchObject({
      kind: 'Json',
      value: { items: 0, note: expect.stringMatching(/^No PipelineRuns/) },
    });
    archive.faults.status = () => 503;
    expect(await list()).toMatchObject({
      kind: 'Json',
      value: {
        note: expect.stringMatching(/^What could be read/),
        incomplete: expect.stringMatching(/KubeArchive/),
      },
    });
  });

  it('that refuse the token say it, and no token', async () => {
    for (const fake of [archive, cluster]) fake.state.tokens.clear();
    const output = JSON.stringify(await list());
    expect(output).toMatch(/answered 401/);
    expect(output).not.toContain(TOKEN);
  });
});

describe('what is read', () => {
  it('is the commit of the run, also by its first digits', async () => {
    cluster.state.keep(aRunObject('one'));
    expect((await read(list({ sha: SHA.slice(0, 8).toUpperCase() }))).names).toEqual(['one']);
    expect(cluster.requests[0]?.query['labelSelector']).toBe(`${BUILD_LABEL}=${SHA}`);
  });

  it('is no other commit, and nothing is asked for one', async () => {
    expect(await list({ sha: 'f'.repeat(40) })).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/Not allowed: commit f{40}\. .* "4f0c/),
    });
    expect(await list({ sha: `${SHA},x=y` })).toMatchObject({ kind: 'Error' });
    expect(cluster.requests).toEqual([]);
  });

  it('leaves out what a server sends without being asked, and says so', async () => {
    const answers = JSON.stringify({ items: [aRunObject('own'), aRunObject('foreign', foreign)] });
    await withServer(answers, async (url) => {
      const loose = konfluxTools(konfluxAt(http, url), scope);
      const { names, incomplete } = await read(callTool(loose, 'konflux_list_pipelineruns', { sha: SHA }));
      expect(names).toEqual(['own']);
      expect(incomplete).toMatch(/items of other commits were sent and left out/);
    });
  });

  it('comes in lines also where it was written over many', async () => {
    await withServer(JSON.stringify({ items: [aRunObject('own')] }, undefined, '\r\n\t'), async (url) => {
      const tools = konfluxTools(konfluxAt(http, url), scope);
      const { text } = await readStream(await callTool(tools, 'konflux_list_pipelineruns', { sha: SHA }));
      expect(text.split('\n')).toHaveLength(2);
      expect(text).not.toContain('\r');
      expect(JSON.parse(text)).toEqual(aRunObject('own'));
    });
  });

  it('is no login page', async () => {
    await withServer('<html><body>Log in', async (url) => {
      const output = await callTool(konfluxTools(konfluxAt(http, url), scope), 'konflux_list_pipelineruns', {
        sha: SHA,
      });
      expect(JSON.stringify(output)).toMatch(/a list begins with \{/);
    });
  });

  it('ends with a server that leads in circles', async () => {
    const page = JSON.stringify({ metadata: { continue: 'again' }, items: [aRunObject('one')] });
    await withServer(page, async (url) => {
      const tools = konfluxTools(konfluxAt(http, url), scope);
      const { names, incomplete } = await read(callTool(tools, 'konflux_list_pipelineruns', { sha: SHA }));
      expect(names).toEqual(['one']);
      expect(incomplete).toMatch(/its pages do not end/);
    });
  });

  it('ends with the run', async () => {
    keepMany(archive, 600, 'run');
    const controller = new AbortController();
    const output = await callTool(tools(), 'konflux_list_pipelineruns', { sha: SHA }, controller.signal);
    controller.abort(new Error('the run is over'));
    await expect(readStream(output)).rejects.toThrow('the run is over');
  });
});

describe('a token whose time is over', () => {
  /** The first page is followed by a refusal as the API server words it, then by the rest. */
  const server = (expiry: object | undefined) => {
    const asked: (string | null)[] = [];
    const reply = (url: URL): readonly [number, object] => {
      const token = url.searchParams.get('continue');
      if (url.searchParams.get('labelSelector')?.startsWith(TEST_LABEL)) return [200, { items: [] }];
      asked.push(token);
      if (token === 'old')
        return [410, { kind: 'Status', reason: 'Expired', code: 410, metadata: expiry ?? {} }];
      if (token === 'fresh') return [200, { items: [aRunObject('two')] }];
      if (asked.length > 1) return [200, { items: [aRunObject('one'), aRunObject('two')] }];
      return [200, { metadata: { continue: 'old' }, items: [aRunObject('one')] }];
    };
    return { asked, reply };
  };

  it('is replaced by the one that the refusal carries', async () => {
    const { asked, reply } = server({ continue: 'fresh' });
    await withServer(reply, async (url) => {
      const tools = konfluxTools(konfluxAt(http, url), scope);
      const { names, incomplete } = await read(callTool(tools, 'konflux_list_pipelineruns', { sha: SHA }));
      expect({ names, incomplete, asked }).toEqual({
        names: ['one', 'two'],
        incomplete: undefined,
        asked: [null, 'old', 'fresh'],
      });
    });
  });

  it('is given up without one: the list is read from its beginning, and nothing comes twice', async () => {
    const { asked, reply } = server(undefined);
    await withServer(reply, async (url) => {
      const tools = konfluxTools(konfluxAt(http, url), scope);
      const { names, incomplete } = await read(callTool(tools, 'konflux_list_pipelineruns', { sha: SHA }));
      expect({ names, incomplete, asked }).toEqual({
        names: ['one', 'two'],
        incomplete: undefined,
        asked: [null, 'old', null],
      });
    });
  });
});

async function withServer(
  answer: string | ((url: URL) => readonly [number, object]),
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server: Server = createServer((request, response) => {
    const [status, body] =
      typeof answer === 'string'
        ? ([200, answer] as const)
        : (([code, object]) => [code, JSON.stringify(object)] as const)(
            answer(new URL(request.url ?? '', 'http://x')),
          );
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
