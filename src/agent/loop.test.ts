import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Journals } from '../../test/builders/journals.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import {
  type OpenAiServer,
  type Script,
  type ScriptedTurn,
  startOpenAi,
} from '../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Clock } from './clock.ts';
import type { LoopEvent, LoopOptions, LoopResult } from './loop.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import { defineParameters } from './tools/parameters.ts';
import type { Tool } from './tools/port.ts';
import { createRegistry, type RegistryOptions } from './tools/registry.ts';

let http: HttpClient;
let sandbox: LocalSandbox;
let server: OpenAiServer;
let events: LoopEvent[];
let waits: number[];
let journals: Journals;

beforeEach(async () => {
  http = createHttpClient();
  sandbox = await startLocalSandbox();
  events = [];
  waits = [];
  journals = new Journals();
});
afterEach(async () => {
  await http.close();
  await server.stop();
  await sandbox.cleanup();
  // Nothing is left of the model and the sandbox by now: the journals alone must do.
  await journals.replayAll();
}, 60_000);

/** Does not wait, but remembers how long it should have. */
const clock: Clock = {
  now: () => 1_700_000_000_000,
  sleep: async (milliseconds, signal) => {
    signal?.throwIfAborted();
    waits.push(milliseconds);
  },
};

type More = Partial<Omit<LoopOptions, 'tools'>> & { registry?: Partial<RegistryOptions>; name?: string };

/** A loop with the server's model, real tools and a local sandbox. Every one is replayed after its test. */
async function run({ registry, name = 'scripted', ...more }: More = {}): Promise<LoopResult> {
  return journals.run({
    model: createOpenAiModel({ name, baseUrl: server.url, http }),
    system: 'You are tested.',
    contents: [{ role: 'user', content: '{"iid":1}' }],
    tools: createRegistry({ tools: [], sandbox, ...registry }),
    limits: { maxIterations: 10, contextTokens: 60_000 },
    signal: new AbortController().signal,
    clock,
    sink: (event) => events.push(event),
    ...more,
  });
}
async function start(script: Script, name = 'scripted'): Promise<void> {
  server = await startOpenAi({ scripts: { [name]: script } });
}

const exec = (command: string): ScriptedTurn => ({
  toolCalls: [{ name: 'sandbox_exec', args: { command } }],
});
/** The turns one after the other; the last one again and again. */
const turns =
  (...list: ScriptedTurn[]): Script =>
  (_request, call) =>
    list[Math.min(call, list.length) - 1] ?? {};
const lastMessage = (index: number): string => String(server.requests[index]?.messages.at(-1)?.content);
const toolMessages = (index: number): unknown[] =>
  (server.requests[index]?.messages ?? []).flatMap((m) => (m.role === 'tool' ? [JSON.parse(m.content)] : []));

function aTool(name: string, output: () => Promise<string>, more: Partial<Tool> = {}): Tool {
  const { schema, parse } = defineParameters(z.strictObject({}));
  const definition = { name, description: name, parameters: schema };
  return { definition, parse, run: async () => ({ kind: 'Text', text: await output() }), ...more };
}

describe('a conversation', () => {
  test('runs the tools that the model asks for and ends with its answer', async () => {
    await start(
      turns(exec('echo found'), { text: '# Report', usage: { prompt: 50, completion: 5, cached: 20 } }),
    );
    const result = await run();
    expect(result).toMatchObject({
      kind: 'Answered',
      reason: 'answered',
      text: '# Report',
      iterations: 2,
      toolCalls: 1,
    });
    expect(toolMessages(1)).toEqual([{ exit_code: 0, stdout: 'found\n', stderr: '' }]);
    expect(result.usage.cacheReadTokens).toBe(20);
    expect(result).not.toHaveProperty('costUsd');
    expect(result.contents).toHaveLength(4);
    expect(events.map(({ type }) => type)).toEqual([
      'IterationStarted',
      'ModelAnswered',
      'Checkpointed',
      'ToolStarted',
      'ToolFinished',
      'Checkpointed',
      'IterationStarted',
      'ModelAnswered',
      'Checkpointed',
      'Ended',
    ]);
  });

  test('a failing tool and an unknown one are told to the model, and the run goes on', async () => {
    await start(
      turns(
        {
          toolCalls: [
            { name: 'boom', args: {} },
            { name: 'nope', args: {} },
          ],
        },
        { text: 'done' },
      ),
    );
    const tools = [aTool('boom', () => Promise.reject(new Error('503')))];
    expect(await run({ registry: { tools } })).toMatchObject({ kind: 'Answered', toolCalls: 2 });
    expect(toolMessages(1)).toMatchObject([
      { error: 'Tool boom failed: 503' },
      { error: expect.stringMatching(/no tool nope/) },
    ]);
  });

  test('reads of one turn run side by side, results come in the order of the calls', async () => {
    let running = 0;
    let most = 0;
    const slow = (name: string, milliseconds: number): Tool =>
      aTool(name, async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, milliseconds));
        running -= 1;
        return name;
      });
    await start(turns({ toolCalls: ['a', 'b', 'c'].map((name) => ({ name, args: {} })) }, { text: 'done' }));
    await run({ registry: { tools: [slow('a', 60), slow('b', 5), slow('c', 30)] } });
    expect(most).toBe(3);
    expect(toolMessages(1)).toEqual([{ output: 'a' }, { output: 'b' }, { output: 'c' }]);
  });

  test('a command waits for what the calls before it fetched', async () => {
    const toolCalls = [
      { name: 'fetch_to_sandbox', args: { tool: 'log', args: {}, path: 'log.txt' } },
      { name: 'sandbox_exec', args: { command: 'cat log.txt' } },
    ];
    await start(turns({ toolCalls }, { text: 'done' }));
    await run({ registry: { tools: [aTool('log', async () => 'line')] } });
    expect(toolMessages(1)[1]).toMatchObject({ stdout: 'line' });
  });

  test('secrets of the process are removed from results before they are kept or sent', async () => {
    await start(turns(exec('printf "t0ken-value and $""GITLAB"'), { text: 'It was t0ken-value.' }));
    const result = await run({ redact: (text) => text.replaceAll('t0ken-value', '[redacted]') });
    expect(toolMessages(1)).toMatchObject([{ stdout: '[redacted] and $GITLAB' }]);
    expect(result.text).toBe('It was [redacted].');
    expect(JSON.stringify([result.transcript, result.contents.slice(0, 3)])).not.toContain('t0ken-value"');
  });
});

describe('limits', () => {
  test('at 80 % of the iterations the model is warned, in the last one it has no tools', async () => {
    await start(({ tools }) => (tools ? exec('true') : { text: 'all I know' }));
    const result = await run({ limits: { maxIterations: 5, contextTokens: 60_000 } });
    expect(result).toMatchObject({
      kind: 'Partial',
      reason: 'iterationLimit',
      text: 'all I know',
      iterations: 5,
    });
    expect(server.requests.map(({ tools }) => tools?.length ?? 0)).toEqual([3, 3, 3, 3, 0]);
    expect(lastMessage(2)).not.toMatch(/Turn/);
    expect(lastMessage(3)).toMatch(/^Turn 4 of 5\./);
    expect(lastMessage(4)).toMatch(/last turn \(5 turns\)/);
  });

  test('warnings are not kept in the conversation', async () => {
    await start(({ tools }) => (tools ? exec('true') : { text: 'end' }));
    const result = await run({ limits: { maxIterations: 5, contextTokens: 60_000 } });
    expect(JSON.stringify(result.contents)).not.toMatch(/Turn 4|last turn/);
  });

  test('the context limit takes the tools away in the next call', async () => {
    const used = [100, 850, 1000];
    await start(({ tools }, call) => ({
      ...(tools ? exec('true') : { text: 'end' }),
      usage: { prompt: used[call - 1] ?? 1100, completion: 1 },
    }));
    const result = await run({ limits: { maxIterations: 30, contextTokens: 1000 } });
    expect(result).toMatchObject({ kind: 'Partial', reason: 'contextLimit', iterations: 4 });
    expect(lastMessage(1)).not.toMatch(/tokens/);
    expect(lastMessage(2)).toMatch(/holds 850 of at most 1000 tokens/);
    expect(server.requests[3]?.tools).toBeUndefined();
  });

  test('calls that come without tools are refused, and the text beside them is used', async () => {
    await start(turns({ ...exec('touch ran'), text: 'Partial findings' }));
    const result = await run({ limits: { maxIterations: 1, contextTokens: 60_000 } });
    expect(result).toMatchObject({
      kind: 'Partial',
      reason: 'iterationLimit',
      text: 'Partial findings',
      toolCalls: 0,
    });
    expect(sandbox.commands).toEqual([]);
    expect(result.contents).toHaveLength(3);
  });

  test('calls without any text end with the limit named', async () => {
    await start(turns(exec('true')));
    const result = await run({ limits: { maxIterations: 2, contextTokens: 60_000 } });
    expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'iterationLimit' });
    expect(result.text).toMatch(/ended at a limit \(2 turns\)/);
  });

  test('a budget keeps the last affordable turn for the report', async () => {
    const price = { prefix: 'priced', input: 1000, output: 1000, cacheRead: 100, cacheWrite: 0 };
    // A call is thought to take 4096 tokens of output, about $4.1, and takes $1.1 here.
    await start(
      ({ tools }) => ({
        ...(tools ? exec('true') : { text: 'report' }),
        usage: { prompt: 1000, completion: 100 },
      }),
      'priced',
    );
    const limits = { maxIterations: 30, contextTokens: 60_000, budgetUsd: 14 };
    const result = await run({ name: 'priced', prices: [price], limits });
    expect(result).toMatchObject({ kind: 'Partial', reason: 'budget', text: 'report' });
    expect(result.costUsd).toBeCloseTo(1.1 * result.iterations, 6);
    expect(result.costUsd).toBeLessThan(14);
    expect(result.iterations).toBeGreaterThan(1);
  });

  test('a budget that not even the report fits in ends without a call', async () => {
    const price = { prefix: 'priced', input: 1000, output: 1000, cacheRead: 100, cacheWrite: 0 };
    await start(turns({ text: 'never' }), 'priced');
    const limits = { maxIterations: 30, contextTokens: 60_000, budgetUsd: 1 };
    const result = await run({ name: 'priced', prices: [price], limits });
    expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'budget', iterations: 0, costUsd: 0 });
    expect(server.requests).toHaveLength(0);
  });

  test('a budget without a known price is warned of, not silently kept', async () => {
    await start(turns({ text: 'ok' }));
    await run({ limits: { maxIterations: 5, contextTokens: 60_000, budgetUsd: 1 } });
    expect(events[0]).toMatchObject({ type: 'Warning', message: expect.stringMatching(/No price is known/) });
  });
});

describe('empty, malformed and cut answers', () => {
  const empty: ScriptedTurn = { text: '' };

  test('BR-29 a: an empty answer is asked again with a nudge and never sent back', async () => {
    await start(turns(empty, empty, { text: 'report' }));
    const result = await run();
    expect(result).toMatchObject({ kind: 'Answered', text: 'report', iterations: 3 });
    expect(server.refusals).toEqual([]);
    expect(server.requests[1]?.messages.filter(({ role }) => role === 'assistant')).toEqual([]);
    expect(lastMessage(1)).toMatch(/Your last answer was empty/);
    expect(result.contents).toHaveLength(2);
  });

  test('three empty answers in a row end the run without an answer', async () => {
    await start(turns(empty));
    const result = await run();
    expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'noAnswer', iterations: 3 });
    expect(result.text).toMatch(/gave no answer/);
  });

  test('BR-20: the count of empty answers starts again after tool calls', async () => {
    await start(turns(exec('true'), empty, exec('true'), empty, empty, { text: 'report' }));
    expect(await run()).toMatchObject({ kind: 'Answered', iterations: 6 });
    expect(server.requests).toHaveLength(6);
  });

  test('BR-21 c: text cut by the output limit is kept and marked as cut', async () => {
    await start(turns({ text: 'half', finishReason: 'length' }));
    const result = await run();
    expect(result).toMatchObject({ kind: 'Partial', reason: 'outputLimit' });
    expect(result.text).toMatch(/^half\n\n_The answer was cut/);
  });

  test('calls of an answer that the output limit cut are failed, not executed', async () => {
    await start(turns({ ...exec('touch ran'), finishReason: 'length' }, { text: 'report' }));
    expect(await run()).toMatchObject({ kind: 'Answered', toolCalls: 0 });
    expect(sandbox.commands).toEqual([]);
    expect(toolMessages(1)).toMatchObject([
      { error: expect.stringMatching(/^Not executed: the answer was cut/) },
    ]);
  });

  test('a blocked answer ends at once with the reason', async () => {
    await start(turns({ text: '', finishReason: 'content_filter' }));
    expect(await run()).toMatchObject({ kind: 'NoAnswer', reason: 'blocked', iterations: 1 });
  });

  test('more calls than a turn may have are refused one by one', async () => {
    const toolCalls = Array.from({ length: 40 }, () => ({ name: 'a', args: {} }));
    await start(turns({ toolCalls }, { text: 'done' }));
    await run({ registry: { tools: [aTool('a', async () => 'x')] } });
    expect(toolMessages(1)).toHaveLength(40);
    expect(toolMessages(1).filter((result) => JSON.stringify(result).includes('Not executed'))).toHaveLength(
      8,
    );
  });
});

describe('model errors', () => {
  const busy = { kind: 'Status', status: 503 } as const;

  test('are tried again after 5, 10, 20 and 40 s, then end with what is known', async () => {
    await start(turns({ ...exec('true'), text: 'Job lint failed.' }));
    server.faults.push(undefined, busy, busy, busy, busy, busy);
    const result = await run();
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000]);
    expect(result).toMatchObject({
      kind: 'Failed',
      reason: 'modelError',
      modelStatus: 503,
      iterations: 1,
      toolCalls: 1,
    });
    expect(result.text).toMatch(/answered 503[\s\S]*last notes:\n\nJob lint failed\./);
    expect(result.contents).toHaveLength(3);
  });

  test('wait as long as the provider asks, a minute at the most', async () => {
    await start(turns({ text: 'ok' }));
    const limited = (seconds: string) =>
      ({ kind: 'Status', status: 429, headers: { 'retry-after': seconds } }) as const;
    server.faults.push(limited('48'), limited('600'));
    expect(await run()).toMatchObject({ kind: 'Answered' });
    expect(waits).toEqual([48_000, 60_000]);
  });

  test('that waiting does not cure are not repeated', async () => {
    await start(turns({ text: 'ok' }), 'other');
    const result = await run();
    expect(result).toMatchObject({ kind: 'Failed', reason: 'modelError', modelStatus: 404, iterations: 0 });
    expect(result.text).toMatch(/The model 'scripted' does not exist.*Check the base URL/);
    expect(waits).toEqual([]);
  });

  test.each([{ kind: 'Drop' }, { kind: 'CutBody' }, { kind: 'Garbage', text: '<html>' }] as const)(
    'a broken answer ($kind) is asked for again',
    async (fault) => {
      await start(turns({ text: 'ok' }));
      server.faults.push(fault);
      expect(await run()).toMatchObject({ kind: 'Answered' });
      expect(waits).toEqual([5_000]);
    },
  );
});

describe('stopping from outside', () => {
  test.each([
    ['cancelled', new Error('by user')],
    ['timeout', new DOMException('too long', 'TimeoutError')],
  ])('ends with %s, the command killed and the conversation closed', async (reason, cause) => {
    const controller = new AbortController();
    await start(turns({ ...exec('sleep 60'), text: 'Looking.' }));
    const sink = (event: LoopEvent): void => {
      if (event.type === 'ToolStarted') setTimeout(() => controller.abort(cause), 50);
    };
    const result = await run({ signal: controller.signal, sink });
    expect(result).toMatchObject({ kind: 'Cancelled', reason });
    expect(result.text).toMatch(/Looking\./);
    expect(result.contents.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringMatching(/Not finished/),
    });
  });

  test('does not wait for a model that does not answer', async () => {
    const controller = new AbortController();
    await start(() => new Promise(() => undefined));
    setTimeout(() => controller.abort(), 50);
    expect(await run({ signal: controller.signal })).toMatchObject({ kind: 'Cancelled', iterations: 0 });
  });
});

describe('checkpoints', () => {
  const script = turns(
    {
      toolCalls: [
        { name: 'sandbox_exec', args: { command: 'echo 1 >> ran; seq 3000' } },
        { name: 'sandbox_exec', args: { command: 'echo 2 >> ran; cat ran' } },
      ],
    },
    { text: '' },
    exec('echo 3 >> ran; cat ran'),
    { text: 'report' },
  );

  async function checkpointed(): Promise<{ states: string[]; result: LoopResult }> {
    const states: string[] = [];
    await start(script);
    const result = await run({ checkpoint: async (state) => void states.push(JSON.stringify(state)) });
    await server.stop();
    return { states, result };
  }

  test('are numbered and follow every answer with calls, every command, every iteration and the end', async () => {
    const { states, result } = await checkpointed();
    const read = states.map((state): Checkpoint => JSON.parse(state));
    expect(read.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(
      read.map(({ iteration, pending, ending }) => [iteration, pending?.results.length, ending?.kind]),
    ).toEqual([
      [1, 0, undefined],
      [1, 1, undefined],
      [1, undefined, undefined],
      [2, undefined, undefined],
      [3, 0, undefined],
      [3, undefined, undefined],
      [4, undefined, 'Answered'],
    ]);
    expect(result.sequence).toBe(7);
  });

  test('resumed at any of them, a run ends the same and repeats no finished call', async () => {
    const { states, result } = await checkpointed();
    const answers = [1, 1, 1, 2, 3, 3, 4];
    for (const [index, state] of states.entries()) {
      const done = answers[index] ?? 0;
      await start((request, call) => script(request, call + done));
      await sandbox.exec('rm -f /tmp/data/ran');
      const counter = JSON.parse(state).spillCounter;
      const resumed = await run({
        resume: JSON.parse(state),
        contents: [],
        registry: { spillCounter: { last: counter, next: () => counter + 1, giveBack: () => undefined } },
      });
      expect(resumed).toMatchObject({ kind: 'Answered', text: 'report', iterations: 4, toolCalls: 3 });
      expect(resumed.contents).toHaveLength(result.contents.length);
      expect(server.requests).toHaveLength(4 - done);
      expect(server.refusals).toEqual([]);
      await server.stop();
    }
    await start(script);
  });

  test('a call has the same place when another holder makes it again, and another one than any before', async () => {
    const places: string[] = [];
    const { schema, parse } = defineParameters(z.strictObject({}));
    const ask: Tool = {
      definition: { name: 'ask', description: 'ask', parameters: schema },
      parse,
      concurrent: false,
      async run(_args, { place = '' }) {
        places.push(place);
        return { kind: 'Text', text: place };
      },
    };
    const fetch = { requests: ['a', 'b'].map((path) => ({ tool: 'ask', args: {}, path })) };
    const both = {
      toolCalls: [
        { name: 'ask', args: {} },
        { name: 'fetch_batch_to_sandbox', args: fetch },
      ],
    };
    await start((_request, call) => (call <= 2 ? both : { text: 'report' }));
    const states: string[] = [];
    await run({
      registry: { tools: [ask] },
      checkpoint: async (state) => void states.push(JSON.stringify(state)),
    });
    expect(places).toEqual(['1.0', '1.1.0', '1.1.1', '2.0', '2.1.0', '2.1.1']);
    places.length = 0;
    // From the second answer on, before any of its calls was made.
    const pending = states.find((state) => JSON.parse(state).iteration === 2) ?? '';
    await run({ registry: { tools: [ask] }, resume: JSON.parse(pending), contents: [] });
    expect(places).toEqual(['2.0', '2.1.0', '2.1.1']);
  });

  test('one that cannot be written ends the run: another holder may have it', async () => {
    await start(turns(exec('touch ran'), { text: 'report' }));
    const result = await run({ checkpoint: () => Promise.reject(new Error('sequence 1 exists')) });
    expect(result).toMatchObject({
      kind: 'Failed',
      reason: 'checkpoint',
      detail: 'sequence 1 exists',
      sequence: 0,
    });
    expect(sandbox.commands).toEqual([]);
  });

  test.each([
    ['of another version', { version: 2 }, /checkpoint cannot be read: version/],
    ['that is damaged', { sequence: 'x' }, /sequence/],
    ['of another provider', { provider: 'anthropic' }, /conversation with anthropic/],
  ])('one %s is refused', async (_name, change, message) => {
    const { states } = await checkpointed();
    await start(script);
    const resume = { ...JSON.parse(states[0] ?? ''), ...change };
    await expect(run({ resume })).rejects.toThrow(message);
  });
});

test('a lost sandbox becomes a message to the model and a fresh one', async () => {
  const fresh = await startLocalSandbox();
  await start(turns(exec('true'), exec('echo again'), { text: 'report' }));
  sandbox.lose();
  const result = await run({ registry: { replaceSandbox: async () => fresh } });
  expect(result).toMatchObject({ kind: 'Answered', toolCalls: 2 });
  expect(toolMessages(2)).toMatchObject([{ sandbox_lost: true }, { stdout: 'again\n' }]);
  await fresh.cleanup();
});

test('a notice is told with the first call only and not kept', async () => {
  await start(turns(exec('true'), { text: 'report' }));
  const result = await run({ notice: 'The sandbox is a new one.' });
  expect(lastMessage(0)).toMatch(/^\{"iid":1\}\n\nThe sandbox is a new one\.$/);
  expect(JSON.stringify(server.requests[1]?.messages)).not.toMatch(/is a new one/);
  expect(JSON.stringify(result.contents)).not.toMatch(/is a new one/);
});

test('a sink that throws does not end the run', async () => {
  await start(turns({ text: 'ok' }));
  const sink = (): void => {
    throw new Error('closed');
  };
  expect(await run({ sink })).toMatchObject({ kind: 'Answered' });
});

test('BR-42: a huge answer and many large calls come through whole', async () => {
  const toolCalls = Array.from({ length: 20 }, (_, n) => ({
    name: 'sandbox_exec',
    args: { command: `: ${'x'.repeat(20_000)}; echo ${n}` },
  }));
  await start(turns({ toolCalls }, { text: 'y'.repeat(3_000_000) }));
  const result = await run();
  expect(result).toMatchObject({ kind: 'Answered', toolCalls: 20 });
  expect(result.text).toHaveLength(3_000_000);
});
