import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Cluster } from '../hack/cluster/cluster.ts';
import { runLoop } from '../src/agent/loop.ts';
import type { Model, ToolCall } from '../src/agent/models/port.ts';
import { defineParameters } from '../src/agent/tools/parameters.ts';
import type { Tool } from '../src/agent/tools/port.ts';
import { createRegistry, type ToolRegistry } from '../src/agent/tools/registry.ts';
import { SCRATCH } from '../src/sandbox/port.ts';
import { createNamespace, deleteNamespace, sandboxPod } from '../test/cluster/shared.ts';
import { type LocalSandbox, startLocalSandbox } from '../test/fakes/local-sandbox.ts';
import { median, type Rows, rounded } from './row.ts';
import type { SpillReport } from './spill-process.ts';

const MEMORY_RUNS = 3;
const MB = 1_000_000;
/** Bytes a token, as tokenizers of today take English and code. */
const BYTES_PER_TOKEN = 4;

/** 200 MB from a data source into a real pod: growth of RSS when it is streamed, and when it is held as a whole. */
export async function spillMemoryBench(cluster: Cluster): Promise<Rows> {
  const namespace = await createNamespace(cluster);
  const source = await startSource();
  try {
    await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(sandboxPod('box')));
    await cluster.kubectl(['wait', '-n', namespace, 'pod/box', '--for=condition=Ready', '--timeout=60s']);
    const uid = await cluster.kubectl(['get', '-n', namespace, 'pod/box', '-o', 'jsonpath={.metadata.uid}']);
    const args = [cluster.kubeconfigPath, namespace, 'box', uid.trim(), source.url];
    const streamed: number[] = [];
    const buffered: number[] = [];
    for (let run = 0; run < MEMORY_RUNS; run += 1) {
      streamed.push((await spillProcess([...args, 'streamed'])).growthBytes / MB);
      buffered.push((await spillProcess([...args, 'buffered'])).growthBytes / MB);
    }
    const row = { unit: 'MB', runs: MEMORY_RUNS, goal: 12 } as const;
    const spread = (values: readonly number[]) => values.map((value) => value.toFixed(1)).join(', ');
    return {
      'spill.rss.mb': {
        ...row,
        value: rounded(median(streamed)),
        better: 'lower',
        note: `200 MB through a tool into a pod: ${spread(streamed)}`,
      },
      // The ablation: above the goal, or streaming would be of no use.
      'spill.buffered.mb': {
        ...row,
        value: rounded(median(buffered)),
        better: 'higher',
        note: `the same held as one text: ${spread(buffered)}`,
      },
    };
  } finally {
    await source.stop();
    await deleteNamespace(cluster, namespace);
  }
}

async function spillProcess(args: readonly string[]): Promise<SpillReport> {
  const script = fileURLToPath(new URL('spill-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`bench: ${script} ended with exit code ${String(code)}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** Lines of text, as many bytes as the query's `size`. */
async function startSource(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://source');
    void sendText(response, Number(searchParams.get('size')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('bench: the source has no port');
  return {
    url: `http://127.0.0.1:${address.port}/`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function sendText(response: ServerResponse, size: number): Promise<void> {
  const block = Buffer.from(`${'x'.repeat(63)}\n`.repeat(1024));
  for (let left = size; left > 0; left -= block.length) {
    if (!response.write(block.subarray(0, left))) await once(response, 'drain');
  }
  response.end();
}

/**
 * Input tokens of one run of 15 calls, as it is and with every output inline. The same calls and files both times:
 * three sources that are read once, then searched with commands.
 */
export async function spillTokensBench(): Promise<Rows> {
  const spilled = await inputTokens((registry) => registry);
  const inline = await inputTokens(everythingInline);
  return {
    'spill.tokens.ratio': {
      value: rounded(spilled / inline),
      goal: 0.5,
      better: 'lower',
      unit: 'x all inline',
      runs: 1,
      note: `${spilled} input tokens against ${inline} in ${TURNS.length + 1} calls (4 bytes a token)`,
    },
  };
}

/** Files of this repository stand for a log, a list of statuses and a diff. */
const SOURCES = {
  job_log: 'config/crd/hummingbird.dev_agentruns.yaml',
  statuses: 'config/crd/hummingbird.dev_sandboxpools.yaml',
  diff: 'config/crd/hummingbird.dev_agentsessions.yaml',
} as const;

const exec = (command: string) => ({ name: 'sandbox_exec', args: { command } });
const source = (name: keyof typeof SOURCES) => ({ name, args: {} });

const TURNS: readonly { readonly name: string; readonly args: Readonly<Record<string, string>> }[] = [
  source('statuses'),
  source('job_log'),
  exec('grep -n description _out/job_log_2.yaml | head -20'),
  exec('tail -30 _out/job_log_2.yaml'),
  source('diff'),
  exec('grep -c "^ " _out/diff_3.yaml'),
  exec('sed -n "100,140p" _out/diff_3.yaml'),
  exec('grep -n -i error _out/*.yaml'),
  exec('cut -c1-60 _out/statuses_1.yaml'),
  exec('sort _out/statuses_1.yaml | uniq -c | sort -rn | head -15'),
  exec('grep -n -B2 -A8 timeout _out/job_log_2.yaml | head -60'),
  exec('wc -l _out/*'),
  exec('head -c 2000 _out/diff_3.yaml'),
  exec('echo done'),
];

async function inputTokens(through: (registry: ToolRegistry, sandbox: LocalSandbox) => ToolRegistry) {
  const sandbox = await startLocalSandbox();
  try {
    const model = countingModel();
    const { kind, iterations } = await runLoop({
      model,
      system: 'You are measured.',
      contents: [{ role: 'user', content: '{"iid":1}' }],
      tools: through(createRegistry({ sandbox, tools: await sourceTools() }), sandbox),
      limits: { maxIterations: 30, contextTokens: 10_000_000 },
      signal: new AbortController().signal,
    });
    if (kind !== 'Answered' || iterations !== TURNS.length + 1)
      throw new Error(`bench: ${kind}, ${iterations}`);
    return model.inputTokens();
  } finally {
    await sandbox.cleanup();
  }
}

async function sourceTools(): Promise<readonly Tool[]> {
  const { schema, parse } = defineParameters(z.strictObject({}));
  return await Promise.all(
    Object.entries(SOURCES).map(async ([name, file]): Promise<Tool> => {
      const text = await readFile(new URL(`../${file}`, import.meta.url), 'utf8');
      const definition = { name, description: `The ${name}.`, parameters: schema };
      return { definition, parse, run: async () => ({ kind: 'Text', text, suffix: '.yaml' }) };
    }),
  );
}

/** The ablation: whatever went to a file is shown whole. */
function everythingInline(registry: ToolRegistry, sandbox: LocalSandbox): ToolRegistry {
  const whole = (path: unknown) => readFile(String(path).replace(SCRATCH, sandbox.directory), 'utf8');
  return {
    definitions: () => registry.definitions(),
    notes: () => registry.notes(),
    mayRunBeside: (call) => registry.mayRunBeside(call),
    spillCounter: registry.spillCounter,
    sandbox: registry.sandbox,
    async execute(call, context) {
      const { result, outcome } = await registry.execute(call, context);
      if ('saved_to' in result) return { result: { output: await whole(result['saved_to']) }, outcome };
      if (!('stdout_file' in result)) return { result, outcome };
      const { exit_code, stderr, stdout_file } = result;
      return { result: { exit_code, stdout: await whole(stdout_file), stderr }, outcome };
    },
  };
}

/** Plays TURNS, then answers; counts what it is sent. */
function countingModel(): Model & { inputTokens(): number } {
  let tokens = 0;
  let turn = 0;
  return {
    name: 'counting',
    provider: 'bench',
    inputTokens: () => tokens,
    makeUserContent: (text) => ({ role: 'user', content: text }),
    makeToolResponses: (results) =>
      results.map(({ call, result }) => ({ role: 'tool', id: call.id, content: JSON.stringify(result) })),
    toCanonical: () => [],
    fromCanonical: () => [],
    async generate({ system, contents, tools }) {
      const inputTokens = Math.ceil(
        Buffer.byteLength(JSON.stringify({ system, contents, tools })) / BYTES_PER_TOKEN,
      );
      tokens += inputTokens;
      const next = TURNS[turn++];
      const calls: ToolCall[] = next
        ? [
            {
              id: `call-${turn}`,
              name: next.name,
              arguments: next.args,
              rawArguments: JSON.stringify(next.args),
            },
          ]
        : [];
      return {
        text: next ? '' : 'Done.',
        toolCalls: calls,
        usage: { inputTokens, outputTokens: 50, cacheReadTokens: 0, cacheWriteTokens: 0 },
        finishReason: next ? 'ToolCalls' : 'Stop',
        content: { role: 'assistant', content: next ? null : 'Done.', tool_calls: calls },
      };
    },
  };
}
