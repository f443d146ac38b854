import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOpenAiModel } from '../../src/agent/models/openai/adapter.ts';
import type { ToolCall } from '../../src/agent/models/port.ts';
import type { Tool } from '../../src/agent/tools/port.ts';
import { createRegistry, type ToolRegistry } from '../../src/agent/tools/registry.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { ManualClock } from '../../src/kube/clock.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podSandbox } from '../../src/sandbox/pod/pod.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { Journals } from '../builders/journals.ts';
import { startOpenAi } from '../fakes/openai/server.ts';
import { openPods, type Pods } from '../sandbox/pods.ts';

const MIB = 1024 * 1024;
const signal = new AbortController().signal;

let pods: Pods;
let sandbox: Sandbox;
let registry: ToolRegistry;

beforeAll(async () => {
  pods = await openPods();
  registry = await registryOn('tools');
});
afterAll(() => pods?.dispose());

async function registryOn(
  name: string,
  tools: readonly Tool[] = [],
  execTimeoutMs?: number,
): Promise<ToolRegistry> {
  const { uid } = await pods.ready(name);
  sandbox = podSandbox({
    connection: pods.connection,
    client: pods.client,
    namespace: pods.namespace,
    pod: name,
    uid,
    ref: { kind: 'Pod', name, namespace: pods.namespace },
    deletePod: () => pods.delete(name),
    logger: silentLogger,
  });
  await sandbox.start();
  return createRegistry({ sandbox, tools, ...(execTimeoutMs !== undefined && { execTimeoutMs }) });
}

async function exec(command: string, on = registry) {
  const call: ToolCall = { id: 'c', name: 'sandbox_exec', arguments: { command }, rawArguments: '' };
  return on.execute(call, { signal });
}

/** Highest resident size above the one at the start, sampled while the work runs. */
async function memoryGrowth(work: () => Promise<unknown>): Promise<number> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let highest = before;
  const timer = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage().rss);
  }, 20);
  await work();
  clearInterval(timer);
  return highest - before;
}

test('a command in a real pod answers with its exit code and output', async () => {
  expect(await exec("echo out; echo it\\'s err >&2; pwd; exit 4")).toEqual({
    result: { exit_code: 4, stdout: 'out\n/tmp/data\n', stderr: "it's err\n" },
    outcome: 'Ok',
  });
});

test('output over 4096 bytes is in the named file, and can be searched there', async () => {
  const { result } = await exec('seq 100000');
  expect(result).toMatchObject({ exit_code: 0, stdout_bytes: 588895, stdout_lines: 100000 });
  const found = await exec(`grep -n '^77777$' ${String(result['stdout_file'])}`);
  expect(found.result).toMatchObject({ stdout: '77777:77777\n' });
});

test('BR-33: bytes that are no UTF-8 do not cost the call, and arrive unchanged in the file', async () => {
  expect((await exec("printf '\\324ok'")).result).toMatchObject({
    exit_code: 0,
    stdout_bytes: 3,
    stdout: '\ufffdok',
  });
  const { result } = await exec('head -c 65536 /dev/urandom | tee copy');
  const same = await exec(`cmp copy ${String(result['stdout_file'])} && echo same`);
  expect(same.result).toMatchObject({ stdout: 'same\n' });
});

test('a long command with quotes arrives whole', async () => {
  const text = `it's ${randomBytes(100_000).toString('base64')}`;
  const { result } = await exec(`cat <<'END' | wc -c\n${text}\nEND`);
  expect(result).toMatchObject({ stdout: `${text.length + 1}\n` });
});

test('BR-34: a command that takes too long is answered with what it printed, and is gone', async () => {
  const hasty = createRegistry({ sandbox, tools: [], execTimeoutMs: 1_500 });
  const { result, outcome } = await exec('echo begun; sleep 601 & sleep 601', hasty);
  expect(outcome).toBe('TimedOut');
  expect(result).toMatchObject({ timed_out: true, stdout: 'begun\n' });
  expect((await exec('pgrep -c -f "sleep 601$" || true')).result).toMatchObject({ stdout: '0\n' });
});

test('BR-34: two sleeps of 600 s end at 120 s, the loop goes on, and nothing of them is left', async () => {
  const clock = new ManualClock();
  const patient = podSandbox({
    ...{ connection: pods.connection, client: pods.client, namespace: pods.namespace },
    ...{ pod: sandbox.ref.name, ref: sandbox.ref, clock, logger: silentLogger },
    deletePod: async () => undefined,
  });
  const commands = ['sleep 600 & sleep 600', 'pgrep -c sleep || true; pgrep -a sleep'];
  const server = await startOpenAi({
    scripts: {
      m: (_request, call) => {
        const command = commands[call - 1];
        return command === undefined
          ? { text: '# Report' }
          : { toolCalls: [{ name: 'sandbox_exec', args: { command } }] };
      },
    },
  });
  const http = createHttpClient();
  const model = createOpenAiModel({ name: 'm', baseUrl: server.url, http });
  const journals = new Journals();
  const sleeping = async () => (await exec('pgrep -c -f "^sleep 600$" || true')).result['stdout'];
  try {
    let ended = 0;
    const running = journals.run({
      ...{ model, system: 's', contents: [model.makeUserContent('{}')], signal },
      tools: createRegistry({ sandbox: patient, tools: [] }),
      limits: { maxIterations: 5, contextTokens: 60_000 },
      sink: ({ type }) => {
        if (type === 'ToolFinished') ended += 1;
      },
    });
    await expect.poll(sleeping, { timeout: 60_000 }).toBe('2\n');
    await clock.advance(119_000);
    expect(await sleeping()).toBe('2\n');
    expect(ended).toBe(0);
    // From here on the clock goes on by itself, slowly: what waits for the killing waits by it too.
    await clock.advance(1_000);
    const ticking = setInterval(() => void clock.advance(20), 100);
    const result = await running.finally(() => clearInterval(ticking));

    expect(result).toMatchObject({ kind: 'Answered', text: '# Report', toolCalls: 2 });
    const [first, second] = server.requests.slice(1).map(({ messages }) => String(messages.at(-1)?.content));
    expect(JSON.parse(first ?? '')).toMatchObject({
      timed_out: true,
      error: expect.stringContaining('120 s'),
    });
    // The one that is left is what the pod itself waits with.
    expect(JSON.parse(second ?? '')).toMatchObject({
      exit_code: 0,
      stdout: expect.stringMatching(/^1\n\d+ sleep (3600|infinity)\n$/),
    });
    expect(await journals.replayAll()).toBeGreaterThan(2);
  } finally {
    await Promise.all([server.stop(), http.close()]);
  }
});

test('10 GiB of output raise the operator’s memory by at most 32 MiB', async () => {
  let result: unknown;
  await exec('true');
  const roomy = createRegistry({ sandbox, tools: [], maxFileBytes: 16 * 1024 * MIB });
  // A hole in the file stands for the bytes: the disk has no room for them, the reader cannot tell.
  const growth = await memoryGrowth(async () => {
    ({ result } = await exec('truncate -s 10G /dev/stdout', roomy));
  });
  expect(result).toMatchObject({ exit_code: 0, stdout_bytes: 10 * 1024 * MIB, stdout_truncated: true });
  expect(result).not.toHaveProperty('stdout_lines');
  console.log(`10 GiB of output: +${(growth / MIB).toFixed(1)} MiB`);
  expect(growth).toBeLessThan(32 * MIB);
  await exec('rm -rf _out');
});

test('output without an end is cut before it fills the disk, and the sandbox stays', async () => {
  const { result, outcome } = await exec('yes; echo after >&2');
  expect(outcome).toBe('Ok');
  expect(result).toMatchObject({
    exit_code: 0,
    stdout_bytes: 512 * MIB,
    stderr: expect.stringMatching(/after\n$/),
    output_cut: expect.stringMatching(/^stdout reached 512 MiB/),
  });
  expect((await exec('rm _out/*.txt')).result).toMatchObject({ exit_code: 0 });
});

test('a tool’s stream of 200 MB goes to a file in constant memory', async () => {
  const block = Buffer.from(`${'x'.repeat(63)}\n`.repeat(1024));
  let size = 100 * MIB;
  async function* chunks(total: number): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < total; sent += block.length) yield block;
  }
  const big: Tool = {
    definition: { name: 'big', description: 'big', parameters: { type: 'object' } },
    parse: () => ({ ok: true, args: {} }),
    run: async () => ({ kind: 'Stream', chunks: chunks(size), suffix: '.log', binary: false }),
  };
  const streaming = createRegistry({ sandbox, tools: [big] });
  const call: ToolCall = { id: 'c', name: 'big', arguments: {}, rawArguments: '{}' };
  // A first stream brings the heap and the socket buffers to their working size: what grows then is kept data.
  await streaming.execute(call, { signal });
  size = 200 * MIB;
  let result: unknown;
  const growth = await memoryGrowth(async () => {
    ({ result } = await streaming.execute(call, { signal }));
  });
  expect(result).toMatchObject({
    saved_to: '/tmp/data/_out/big_2.log',
    bytes: 200 * MIB,
    lines: (200 * MIB) / 64,
  });
  console.log(`200 MiB streamed: +${(growth / MIB).toFixed(1)} MiB`);
  expect(growth).toBeLessThan(32 * MIB);
});

test('a pod that is deleted under a command becomes a message, and its successor is used', async () => {
  const doomed = 'doomed';
  const { uid } = await pods.ready(doomed);
  const lost = podSandbox({
    connection: pods.connection,
    client: pods.client,
    namespace: pods.namespace,
    pod: doomed,
    uid,
    ref: { kind: 'Pod', name: doomed, namespace: pods.namespace },
    deletePod: () => pods.delete(doomed),
    logger: silentLogger,
  });
  await lost.start();
  const replacing = createRegistry({ sandbox: lost, tools: [], replaceSandbox: async () => sandbox });
  const running = exec('sleep 60', replacing);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await pods.delete(doomed);
  expect(await running).toMatchObject({ outcome: 'SandboxLost', result: { sandbox_lost: true } });
  expect((await exec('echo on', replacing)).result).toMatchObject({ stdout: 'on\n' });
});
