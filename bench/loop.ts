import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { checkpointBytes } from '../src/agent/checkpoint.ts';
import { type LoopOptions, runLoop } from '../src/agent/loop.ts';
import { createOpenAiModel } from '../src/agent/models/openai/adapter.ts';
import type { Model } from '../src/agent/models/port.ts';
import { defineParameters } from '../src/agent/tools/parameters.ts';
import type { Tool } from '../src/agent/tools/port.ts';
import { createRegistry } from '../src/agent/tools/registry.ts';
import { saveCheckpoint } from '../src/controllers/run/checkpoints.ts';
import { createHttpClient } from '../src/http/client.ts';
import { createRedactor } from '../src/http/redaction.ts';
import { createFolderStore } from '../src/store/folder.ts';
import type { ObjectStore } from '../src/store/port.ts';
import { median, percentile, type Rows, rounded } from './row.ts';

const ITERATIONS = 100;
const RUNS_AT_ONCE = 100;
const MODEL_MS = 100;
/** Of each of the runs that go at once, the report included. */
const TURNS = 10;
const ROUNDS = 3;

/** What the loop itself costs: tools, redaction, history and checkpoints in a folder; the model answers at once. */
export async function loopOverheadBench(): Promise<Rows> {
  const samples = await withStore(async (store) => {
    const iterations: number[] = [];
    // A first run loads and compiles.
    for (const warm of [true, false]) {
      const uid = randomUUID();
      let begun = performance.now();
      await runLoop({
        ...commonOptions(),
        checkpoint: async (state) => void (await saveCheckpoint(store, uid, state)),
        model: instantModel(),
        limits: { maxIterations: ITERATIONS, contextTokens: 1_000_000 },
        sink: ({ type }) => {
          if (type !== 'IterationStarted') return;
          const now = performance.now();
          if (!warm) iterations.push(now - begun);
          begun = now;
        },
      });
    }
    return iterations.slice(1);
  });
  return {
    'loop.overhead.p50ms': {
      value: rounded(median(samples)),
      goal: 10,
      better: 'lower',
      unit: 'ms an iteration',
      runs: samples.length,
      note: `p95 ${rounded(percentile(samples, 0.95))} ms, with checkpoints in a folder`,
    },
  };
}

/** Many runs in one process, each with its model over HTTP, against what they would take if the model were all. */
export async function loopConcurrencyBench(): Promise<Rows> {
  const server = await startModelServer();
  const http = createHttpClient();
  try {
    const model = createOpenAiModel({ name: 'bench', baseUrl: server.url, http });
    const times: number[] = [];
    await allAtOnce(RUNS_AT_ONCE, model);
    for (let round = 0; round < ROUNDS; round += 1) {
      const begun = performance.now();
      await allAtOnce(RUNS_AT_ONCE, model);
      times.push(performance.now() - begun);
    }
    const ideal = TURNS * MODEL_MS;
    return {
      'loop.concurrency.ratio': {
        value: rounded(median(times) / ideal),
        goal: 1.3,
        better: 'lower',
        unit: `x ideal (${ideal} ms)`,
        runs: ROUNDS,
        note: `${RUNS_AT_ONCE} runs of ${TURNS} calls of ${MODEL_MS} ms, checkpoints written out; ${times.map((ms) => Math.round(ms)).join(', ')} ms`,
      },
    };
  } finally {
    await http.close();
    await server.stop();
  }
}

async function allAtOnce(runs: number, model: Model): Promise<void> {
  const one = async (): Promise<void> => {
    const { kind, iterations } = await runLoop({
      ...commonOptions(),
      model,
      limits: { maxIterations: 2 * TURNS, contextTokens: 1_000_000 },
      // Made and let go: how fast a store is, and what it keeps, is not the loop's.
      checkpoint: async (state) => void checkpointBytes(state),
    });
    if (kind !== 'Answered' || iterations !== TURNS)
      throw new Error(`bench: ${kind} after ${iterations} calls`);
  };
  await Promise.all(Array.from({ length: runs }, one));
}

function commonOptions(): Omit<LoopOptions, 'model' | 'limits'> {
  const redactor = createRedactor([
    'glpat-bench-aaaaaaaaaaaa',
    'glpat-bench-bbbbbbbbbbbb',
    'key-cccccccccccc',
  ]);
  return {
    system: 'You are measured.',
    contents: [{ role: 'user', content: '{"iid":1}' }],
    tools: createRegistry({ tools: [readTool()] }),
    signal: new AbortController().signal,
    redact: (text) => redactor.redact(text),
  };
}

/** 2 KiB, as a search in a log gives. */
function readTool(): Tool {
  const { schema, parse } = defineParameters(z.strictObject({}));
  const text = 'src/cart.js:17: expected 3 to equal 4\n'.repeat(54);
  return {
    definition: { name: 'read', description: 'Reads.', parameters: schema },
    parse,
    run: async () => ({ kind: 'Text', text }),
  };
}

/** Asks for one tool call an answer, for ever. */
function instantModel(): Model {
  let calls = 0;
  return {
    name: 'instant',
    provider: 'bench',
    makeUserContent: (text) => ({ role: 'user', content: text }),
    makeToolResponses: (results) =>
      results.map(({ call, result }) => ({ role: 'tool', id: call.id, content: JSON.stringify(result) })),
    toCanonical: () => [],
    fromCanonical: () => [],
    generate: async () => {
      const call = { id: `call-${++calls}`, name: 'read', arguments: {}, rawArguments: '{}' };
      return {
        text: '',
        toolCalls: [call],
        usage: { inputTokens: 100, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0 },
        finishReason: 'ToolCalls',
        content: { role: 'assistant', tool_calls: [call] },
      };
    },
  };
}

async function withStore<T>(work: (store: ObjectStore) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-loop-'));
  try {
    return await work(createFolderStore(folder));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function startModelServer(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const script = fileURLToPath(new URL('model-server.ts', import.meta.url));
  const child = spawn(process.execPath, [script, String(MODEL_MS), String(TURNS - 1)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [url] = await once(createInterface(child.stdout), 'line');
  return {
    url: String(url),
    stop: async () => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
