import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startLocalSandbox } from '../../../test/fakes/local-sandbox.ts';
import { type FakeTestingFarm, startTestingFarm } from '../../../test/fakes/testing-farm/server.ts';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { createRegistry } from '../../agent/tools/registry.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { DEFAULT_ARTIFACTS } from './farm.ts';
import { LIST_FAILURES } from './notes.ts';
import { testingFarmTools } from './tools.ts';

const ID = '7c1f1e0e-93a5-4f3b-9c05-2f0a4f6d7b11';
const OTHER = '00000000-93a5-4f3b-9c05-2f0a4f6d7b11';

let farm: FakeTestingFarm;
let http: HttpClient;
let slept: number[];
let tools: readonly Tool[];

beforeEach(async () => {
  farm = await startTestingFarm();
  slept = [];
  const sleep = async (ms: number) => void slept.push(ms);
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep } });
  tools = testingFarmTools({ http, artifactsUrl: farm.artifactsUrl, apiUrl: farm.apiUrl });
});
afterEach(async () => {
  expect(farm.violations).toEqual([]);
  await http.close();
  await farm.stop();
});

async function call(name: string, args: unknown, among = tools): Promise<ToolOutput> {
  const tool = among.find(({ definition }) => definition.name === name);
  const parsed = tool?.parse(args);
  if (!tool || !parsed?.ok) throw new Error(parsed?.ok === false ? parsed.message : `no tool ${name}`);
  return tool.run(parsed.args, { signal: AbortSignal.timeout(60_000) });
}

async function read(output: ToolOutput) {
  if (output.kind !== 'Stream') throw new Error(JSON.stringify(output));
  const parts: Uint8Array[] = [];
  for await (const chunk of output.chunks) parts.push(chunk);
  return { bytes: Buffer.concat(parts), missing: output.incomplete?.() };
}

const refused = (output: ToolOutput): string => {
  if (output.kind !== 'Error') throw new Error(`${output.kind} instead of a refusal`);
  return output.message;
};

describe('definitions', () => {
  test('names are those of the specification, and every answer says where artifacts are', () => {
    expect(tools.map(({ definition }) => definition.name)).toEqual([
      'tf_get_request_status',
      'tf_get_results',
      'tf_get_test_log',
    ]);
    for (const { responseMetadata } of tools)
      expect(responseMetadata).toEqual({ artifacts_base: farm.artifactsUrl });
    const [tool] = testingFarmTools({ http });
    expect(tool?.responseMetadata).toEqual({ artifacts_base: DEFAULT_ARTIFACTS });
  });

  test.each(['', 'not-a-uuid', `${ID}/../x`, `${ID}?a`, `${ID} `, `{${ID}}`, ID.replaceAll('-', '')])(
    'the id %j is no UUID, and nothing is asked',
    (id) => {
      for (const tool of tools.slice(0, 2))
        expect(tool.parse({ request_id: id })).toMatchObject({
          ok: false,
          message: expect.stringContaining('expected the UUID of a request'),
        });
      expect(farm.requests).toEqual([]);
    },
  );

  test('an id in capitals is asked as it is stored', async () => {
    farm.request(ID, { state: 'complete' });
    expect(await call('tf_get_request_status', { request_id: ID.toUpperCase() })).toMatchObject({
      value: { request_id: ID },
    });
  });
});

describe('tf_get_request_status', () => {
  test('says state, result and times, and nothing of what the request was started with', async () => {
    farm.request(ID, {
      state: 'complete',
      result: { overall: 'failed', summary: null, xunit: null },
      queued_time: 15.5,
      run_time: 188.03,
    });
    const output = await call('tf_get_request_status', { request_id: ID });
    expect(output).toMatchObject({
      kind: 'Json',
      value: {
        request_id: ID,
        state: 'complete',
        meaning: 'The tests have run.',
        overall: 'failed',
        queued_seconds: 15.5,
        run_seconds: 188.03,
        environments: [{ arch: 'x86_64', compose: 'Fedora-43' }],
        test: { url: 'https://gitlab.example.org/group/tests', ref: 'main' },
      },
    });
    expect(JSON.stringify(output)).not.toContain('not-for-the-model');
  });

  test.each([
    ['new', /No test has run yet/],
    ['queued', /No test has run yet/],
    ['running', /Tests are running/],
    ['error', /which is no failed test/],
    ['canceled', /was canceled/],
    ['cancel-requested', /was canceled/],
  ] as const)('says what the state %s means', async (state, meaning) => {
    farm.request(ID, { state });
    expect(await call('tf_get_request_status', { request_id: ID })).toMatchObject({
      value: { state, meaning: expect.stringMatching(meaning) },
    });
  });

  test('shows a state that nobody has told us of as it is', async () => {
    farm.request(ID, { state: 'paused' });
    expect(await call('tf_get_request_status', { request_id: ID })).toMatchObject({
      value: { state: 'paused', meaning: 'This state is not known here.' },
    });
  });

  test('an unknown request is not found', async () => {
    expect(refused(await call('tf_get_request_status', { request_id: ID }))).toMatch(
      /^Testing Farm: GET .* answered 404.*do not guess others/,
    );
  });

  test('waits as long as it is asked to, and asks again', async () => {
    farm.request(ID, { state: 'running' });
    farm.faults.push(
      { path: /requests/, status: 429, headers: { 'retry-after': '7' } },
      { path: /requests/, status: 503 },
    );
    expect(await call('tf_get_request_status', { request_id: ID })).toMatchObject({ kind: 'Json' });
    expect(farm.requests).toHaveLength(3);
    expect(slept[0]).toBe(7_000);
  });

  test('an answer of another form is said', async () => {
    farm.request(ID, { state: 'error', result: 'failed' });
    expect(refused(await call('tf_get_request_status', { request_id: ID }))).toMatch(
      /^Testing Farm answered in an unexpected form/,
    );
  });
});

/** Every trait that parsers were seen to fall over: which root, one case, no name, an empty skip, namespaces. */
const ODD = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns="urn:results" xmlns:x="urn:extra" x:odd="&amp;" result="failed" overall-result="failed">
  <properties><property name="größe" value="1"/></properties>
  <testsuite name="one case"><testcase name="passes" result="passed"><logs/></testcase></testsuite>
  <testcase><skipped/></testcase>
  <testcase x:why="no name">
    <failure message="1 &lt; 0"/>
    <logs><log name="testout.log" href="https://artifacts.example.org/a/testout.log"/></logs>
  </testcase>
  <!-- a comment --><?instruction?><x:testsystem/>
</testsuite>\r\n`;

describe('tf_get_results', () => {
  test('BR-58: odd JUnit XML reaches the sandbox byte for byte, and the script of the notes counts one failure in it', async () => {
    const long = Buffer.concat([
      Buffer.from(ODD),
      Buffer.from(`<!-- ${'x'.repeat(8_000)} \u00e9 -->\n`),
      Buffer.from([0xff]),
    ]);
    farm.artifact(ID, 'results.xml', long);
    farm.artifact(OTHER, 'results.xml', ODD);
    const sandbox = await startLocalSandbox();
    try {
      const registry = createRegistry({ tools, sandbox });
      const run = async (name: string, args: Record<string, unknown>) =>
        (
          await registry.execute(
            { id: name, name, arguments: args, rawArguments: JSON.stringify(args) },
            { signal: AbortSignal.timeout(60_000) },
          )
        ).result;
      const spilled = await run('tf_get_results', { request_id: ID });
      expect(spilled).toMatchObject({ bytes: long.length, artifacts_base: farm.artifactsUrl });
      const file = String(spilled['saved_to']).split('/').slice(3).join('/');
      expect((await readFile(join(sandbox.directory, file))).equals(long)).toBe(true);

      const fetch = { tool: 'tf_get_results', args: { request_id: OTHER }, path: '/tmp/data/odd.xml' };
      expect(await run('fetch_to_sandbox', fetch)).toMatchObject({ bytes: Buffer.byteLength(ODD) });
      expect((await readFile(join(sandbox.directory, 'odd.xml'))).equals(Buffer.from(ODD))).toBe(true);
      const listed = await run('sandbox_exec', {
        command: `python3 - /tmp/data/odd.xml <<'EOF'\n${LIST_FAILURES}\nEOF`,
      });
      expect(listed).toMatchObject({ exit_code: 0, stderr: '' });
      const lines = String(listed['stdout']).trimEnd().split('\n');
      expect(lines.slice(1)).toEqual([
        'FAILED (no name) ',
        '    testout.log https://artifacts.example.org/a/testout.log',
      ]);
    } finally {
      await sandbox.cleanup();
    }
  });

  test('the notes show the script, and how a plan without tests looks', () => {
    expect(tools[1]?.definition.notes).toContain(LIST_FAILURES);
  });

  test('results that break off are kept as far as they came', async () => {
    farm.artifact(ID, 'results.xml', ODD);
    farm.faults.push({ path: /results/, breakOffAfter: 100 });
    const { bytes, missing } = await read(await call('tf_get_results', { request_id: ID }));
    expect(bytes.toString()).toBe(Buffer.from(ODD).subarray(0, 100).toString());
    expect(missing).toMatch(/^The results broke off after 100 bytes/);
  });

  test.each([
    ['new', /state is new\. No test has run yet.*not there yet/],
    ['queued', /state is queued\. No test has run yet.*not there yet/],
    ['running', /state is running\. Tests are running.*not there yet/],
    ['canceled', /state is canceled\. The request was canceled/],
    ['complete', /state is complete\. The tests have run, but no results\.xml was kept/],
    ['error', /state is error\. .*no failed test.*Testing Farm says: Install packages failed; guest gone\./],
  ] as const)('a request that is %s and has no results yet is no error of reading', async (state, said) => {
    farm.request(ID, {
      state,
      result: { overall: null, summary: state === 'error' ? 'Install packages\n failed' : null },
      notes: state === 'error' ? [{ level: 'error', message: 'guest gone' }] : [],
    });
    const message = refused(await call('tf_get_results', { request_id: ID }));
    expect(message).toMatch(new RegExp(`^No results for request ${ID}: its `));
    expect(message).toMatch(said);
  });

  test('a store that says 403 of what is not there is understood while the request runs, and believed when it is over', async () => {
    farm.faults.push({ path: /results/, times: 2, status: 403 });
    farm.request(ID, { state: 'running' });
    expect(refused(await call('tf_get_results', { request_id: ID }))).toMatch(/not there yet/);
    farm.request(ID, { state: 'complete' });
    expect(refused(await call('tf_get_results', { request_id: ID }))).toMatch(
      /answered 403.*may not see this/,
    );
  });

  test('a request that nobody knows is told as such', async () => {
    expect(refused(await call('tf_get_results', { request_id: ID }))).toBe(
      `Testing Farm knows no request ${ID}, and has no results of it. Check the id; do not guess others.`,
    );
  });

  test('when the state cannot be asked either, both are said', async () => {
    farm.faults.push({ path: /requests/, times: 9, status: 500 });
    expect(refused(await call('tf_get_results', { request_id: ID }))).toMatch(
      /^No results for request .* \(404\), and why could not be asked\. Testing Farm: .*answered 500/,
    );
  });

  test('a page in the place of XML is not taken for results', async () => {
    farm.artifact(ID, 'results.xml', '\ufeff\n<!DOCTYPE html><html>sign in</html>', 'application/xml');
    expect(refused(await call('tf_get_results', { request_id: ID }))).toMatch(/a page came instead of XML/);
    farm.artifact(ID, 'results.xml', ODD, 'text/html; charset=utf-8');
    expect((await read(await call('tf_get_results', { request_id: ID }))).bytes.toString()).toBe(ODD);
  });

  test('empty results say what to ask', async () => {
    farm.artifact(ID, 'results.xml', '');
    const { missing } = await read(await call('tf_get_results', { request_id: ID }));
    expect(missing).toMatch(/^results\.xml is empty: tf_get_request_status tells/);
  });
});

describe('tf_get_test_log', () => {
  test('a log of the results is read as it is', async () => {
    const log = 'one\r\n\u001b[31mtwo\u001b[0m\n';
    const url = farm.artifact(ID, 'work-x/tests/output.txt', log);
    const output = await call('tf_get_test_log', { url });
    expect(output).toMatchObject({ kind: 'Stream', suffix: '.txt', binary: false });
    expect(await read(output)).toEqual({ bytes: Buffer.from(log), missing: undefined });
  });

  test.each([
    ['a name that needs encoding', 'work/größe 1/out put.txt', '.txt', false],
    ['a folder', 'work-x', '.html', false],
    ['an archive', 'logs.tar.gz', '.gz', true],
    ['a log without an ending', 'console', '.log', false],
  ])('%s is kept as what it is', async (_what, path, suffix, binary) => {
    const content = binary ? Buffer.from([0x1f, 0x8b, 0, 0]) : 'text';
    const kind = suffix === '.html' ? 'text/html' : 'text/plain';
    const url = encodeURI(decodeURI(farm.artifact(ID, path, content, kind)));
    expect(await call('tf_get_test_log', { url })).toMatchObject({ kind: 'Stream', suffix, binary });
  });

  const hostile: readonly (readonly [string, (base: string) => string])[] = [
    ['another host', () => 'https://evil.example/testing-farm/a.log'],
    ['another port', (base) => `${base.replace(/:\d+/, ':1')}/a.log`],
    ['the API', () => farm.apiUrl],
    ['another folder', (base) => `${base}-private/a.log`],
    ['a way up', (base) => `${base}/${ID}/../../v0.1/requests/${ID}`],
    ['an encoded way up', (base) => `${base}/${ID}/%2e%2e/%2E%2e/v0.1`],
    ['an encoded slash', (base) => `${base}/..%2fv0.1`],
    ['a doubly encoded way up', (base) => `${base}/%252e%252e/v0.1`],
    ['a user before the host', (base) => base.replace('http://', 'http://user@')],
    ['the host as a user', (base) => `${base.replace('/testing-farm', '')}@evil.example/testing-farm/a`],
    ['a file', () => 'file:///etc/passwd'],
    ['a backslash', (base) => base.replace('/testing-farm', '\\testing-farm')],
    ['a metadata service', () => 'http://169.254.169.254/testing-farm/'],
    ['a relative address', () => 'work-x/out.txt'],
    ['a script', () => 'javascript:alert(1)'],
  ];
  test.each(hostile)('invariant 9: %s is refused before anything is asked', async (_what, urlOf) => {
    const message = refused(await call('tf_get_test_log', { url: urlOf(farm.artifactsUrl) }));
    expect(message).toMatch(/^Not allowed: /);
    expect(message).toContain(`Logs are read below ${farm.artifactsUrl}/ only`);
    expect(farm.requests).toEqual([]);
  });

  test('invariant 9: a redirect out of the artifacts is refused, one within them is followed', async () => {
    const origin = new URL(farm.artifactsUrl).origin;
    const goal = farm.artifact(ID, 'real.log', 'real');
    farm.redirect(`/testing-farm/${ID}/moved.log`, goal);
    farm.redirect(`/testing-farm/${ID}/twice.log`, `/testing-farm/${ID}/out.log`);
    farm.redirect(`/testing-farm/${ID}/out.log`, `${origin}/v0.1/requests/${ID}`);
    const { bytes } = await read(
      await call('tf_get_test_log', { url: `${farm.artifactsUrl}/${ID}/moved.log` }),
    );
    expect(bytes.toString()).toBe('real');
    farm.requests.splice(0);
    const message = refused(await call('tf_get_test_log', { url: `${farm.artifactsUrl}/${ID}/twice.log` }));
    expect(message).toMatch(/redirected to .*does not lie below.*leads out of where this run may read/);
    expect(farm.requests).toHaveLength(2);
  });

  test('a link of http into artifacts of https is asked by https', async () => {
    const asked: string[] = [];
    const spy: HttpClient = {
      ...http,
      async stream(request) {
        asked.push(String(request.url));
        return { status: 200, headers: {}, body: (async function* () {})() };
      },
    };
    const secure = testingFarmTools({ http: spy });
    const { host, pathname } = new URL(DEFAULT_ARTIFACTS);
    await call('tf_get_test_log', { url: `http://${host}${pathname}/${ID}/a.log` }, secure);
    expect(asked).toEqual([`${DEFAULT_ARTIFACTS}/${ID}/a.log`]);
    expect(
      refused(await call('tf_get_test_log', { url: `http://${host}:8080${pathname}/a` }, secure)),
    ).toMatch(/Not allowed/);
    expect(asked).toHaveLength(1);
  });

  test('artifacts that are named by a name never lead to this machine, whatever it resolves to', async () => {
    const client = createHttpClient({
      resolve: (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
    });
    const { port } = new URL(farm.artifactsUrl);
    const artifactsUrl = `http://artifacts.example.org:${port}/testing-farm`;
    const named = testingFarmTools({ http: client, artifactsUrl });
    const message = refused(await call('tf_get_test_log', { url: `${artifactsUrl}/a.log` }, named));
    expect(message).toContain('address 127.0.0.1 may not be reached');
    expect(farm.requests).toEqual([]);
    await client.close();
  });

  test('a log that is not there is told with what to do', async () => {
    expect(refused(await call('tf_get_test_log', { url: `${farm.artifactsUrl}/${ID}/none.log` }))).toMatch(
      /answered 404.*do not guess others/,
    );
  });

  test('an empty log is told apart from a missing one', async () => {
    const url = farm.artifact(ID, 'empty.log', '');
    expect((await read(await call('tf_get_test_log', { url }))).missing).toMatch(/^The log is empty/);
  });

  test('a log that breaks off keeps what came', async () => {
    const url = farm.artifact(ID, 'long.log', 'x'.repeat(10_000));
    farm.faults.push({ path: /long/, breakOffAfter: 4_000 });
    const { bytes, missing } = await read(await call('tf_get_test_log', { url }));
    expect(bytes).toHaveLength(4_000);
    expect(missing).toMatch(/^The log broke off after 4000 bytes/);
  });
});
