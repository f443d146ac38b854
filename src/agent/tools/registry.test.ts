import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type LocalSandbox, startLocalSandbox } from '../../../test/fakes/local-sandbox.ts';
import { SCRATCH } from '../../sandbox/port.ts';
import type { ToolCall } from '../models/port.ts';
import { defineParameters } from './parameters.ts';
import type { Tool, ToolOutput } from './port.ts';
import { createRegistry, type RegistryOptions } from './registry.ts';

let sandbox: LocalSandbox;
beforeEach(async () => {
  sandbox = await startLocalSandbox();
});
afterEach(() => sandbox.cleanup());

const signal = new AbortController().signal;
const call = (name: string, args: Record<string, unknown> | undefined = {}): ToolCall => ({
  id: 'c1',
  name,
  arguments: args,
  rawArguments: JSON.stringify(args) ?? '[broken',
});

function aTool(
  name: string,
  output: ToolOutput | (() => Promise<ToolOutput>),
  more: Partial<Tool> = {},
): Tool {
  const parameters = defineParameters(z.strictObject({ n: z.int().optional() }));
  return {
    definition: { name, description: name, parameters: parameters.schema },
    parse: parameters.parse,
    run: async () => (typeof output === 'function' ? output() : output),
    ...more,
  };
}

async function* chunksOf(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

const streamOf = (...parts: string[]): ToolOutput => ({
  kind: 'Stream',
  chunks: chunksOf(...parts),
  suffix: '.log',
  binary: false,
});

async function execute(options: Partial<RegistryOptions> & { tools: readonly Tool[] }, ...calls: ToolCall[]) {
  const registry = createRegistry({ sandbox, ...options });
  const results = [];
  for (const one of calls) results.push((await registry.execute(one, { signal })).result);
  return results;
}

const contentOf = (path: unknown): Promise<string> =>
  readFile(String(path).replace(SCRATCH, sandbox.directory), 'utf8');

describe('text of a data source', () => {
  test('is inline at 4096 bytes and spilled at 4097', async () => {
    const tools = [
      aTool('a', { kind: 'Text', text: 'x'.repeat(4096) }),
      aTool('b', { kind: 'Text', text: `${'y'.repeat(4096)}\n` }),
    ];
    const [inline, spilled] = await execute({ tools }, call('a'), call('b'));
    expect(inline).toEqual({ output: 'x'.repeat(4096) });
    expect(spilled).toEqual({
      saved_to: '/tmp/data/_out/b_1.txt',
      bytes: 4097,
      lines: 1,
      preview: 'y'.repeat(3072),
    });
    expect(await contentOf(spilled?.saved_to)).toBe(`${'y'.repeat(4096)}\n`);
  });

  test('as a stream is inline when it ends within 4096 bytes, else piped to a file', async () => {
    const tools = [
      aTool('short', streamOf('ab', 'c')),
      aTool('long', streamOf('a\n'.repeat(2000), 'b\n'.repeat(2000))),
    ];
    const [short, long] = await execute({ tools }, call('short'), call('long'));
    expect(short).toEqual({ output: 'abc' });
    expect(long).toMatchObject({ saved_to: '/tmp/data/_out/long_1.log', bytes: 8000, lines: 4000 });
    expect(await contentOf(long?.saved_to)).toBe('a\n'.repeat(2000) + 'b\n'.repeat(2000));
  });

  test('that breaks off is kept as far as it came, and the gap is named', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(5000, 'x');
      throw new Error('connection reset');
    }
    const output: ToolOutput = { kind: 'Stream', chunks: broken(), suffix: '.log', binary: false };
    const [result] = await execute({ tools: [aTool('a', output)] }, call('a'));
    expect(result).toMatchObject({ bytes: 5000, incomplete: 'The source broke off: connection reset' });
  });

  test('says what the source itself knows to be missing', async () => {
    const output: ToolOutput = { ...streamOf('x'), incomplete: () => 'The log ends at 1 MB.' } as ToolOutput;
    const [result] = await execute({ tools: [aTool('a', output)] }, call('a'));
    expect(result).toEqual({ output: 'x', incomplete: 'The log ends at 1 MB.' });
  });

  test.each([10, 5000])('says what an output of %i bytes is, when its bytes do not', async (size) => {
    for (const binary of [true, false]) {
      const about = { binary, note: () => 'The file is odd.' };
      const output = { ...streamOf('x'.repeat(size)), ...about } as ToolOutput;
      const [result] = await execute({ tools: [aTool('a', output)] }, call('a'));
      expect(result).toMatchObject({ note: 'The file is odd.' });
    }
  });
});

test('JSON is given as it is when small and as an indented .json file when large', async () => {
  const tools = [
    aTool('a', { kind: 'Json', value: { n: 1 } }, { responseMetadata: { ui: 'https://ui' } }),
    aTool('b', { kind: 'Json', value: { list: Array.from({ length: 2000 }, (_, n) => n) } }),
  ];
  const [small, large] = await execute({ tools }, call('a'), call('b'));
  expect(small).toEqual({ n: 1, ui: 'https://ui' });
  expect(large).toMatchObject({ saved_to: '/tmp/data/_out/b_1.json', lines: 2004 });
});

test('binary goes to a .bin file without a preview', async () => {
  const tools = [
    aTool('a', { kind: 'Binary', bytes: Buffer.from([1, 2, 3]) }, { responseMetadata: { ui: 'u' } }),
  ];
  const [result] = await execute({ tools }, call('a'));
  expect(result).toEqual({ saved_to: '/tmp/data/_out/a_1.bin', bytes: 3, ui: 'u' });
});

test('all spills of a run share one counter', async () => {
  const big: ToolOutput = { kind: 'Text', text: 'x'.repeat(5000) };
  const tools = [aTool('a', big), aTool('b', big)];
  const results = await execute(
    { tools },
    call('a'),
    call('sandbox_exec', { command: 'seq 2000' }),
    call('b'),
  );
  expect(results).toMatchObject([
    { saved_to: '/tmp/data/_out/a_1.txt' },
    { stdout_file: '/tmp/data/_out/2.txt' },
    { saved_to: '/tmp/data/_out/b_3.txt' },
  ]);
});

describe('fetch_to_sandbox', () => {
  const text: ToolOutput = { kind: 'Text', text: 'one\ntwo\n' };

  test('writes the whole output to the path and shows nothing of it', async () => {
    const tools = [aTool('a', text, { responseMetadata: { ui: 'u' } })];
    const [result] = await execute(
      { tools },
      call('fetch_to_sandbox', { tool: 'a', args: {}, path: 'logs/one.txt' }),
    );
    expect(result).toEqual({ path: '/tmp/data/logs/one.txt', bytes: 8, lines: 2, ui: 'u' });
    expect(await contentOf(result?.path)).toBe('one\ntwo\n');
  });

  test.each(['/etc/passwd', '../x', '/tmp/data/../x', '/tmp/data', '/tmp/database/x', 'a\0b'])(
    'refuses the path %j, which is not below the work directory',
    async (path) => {
      const [result] = await execute(
        { tools: [aTool('a', text)] },
        call('fetch_to_sandbox', { tool: 'a', args: {}, path }),
      );
      expect(result?.error).toMatch(/not below \/tmp\/data/);
    },
  );

  test('in a batch answers in order, and one failure does not stop the others', async () => {
    const tools = [
      aTool('a', text),
      aTool('bad', async () => {
        throw new Error('503');
      }),
    ];
    const requests = [
      { tool: 'bad', args: {}, path: 'x' },
      { tool: 'a', args: {}, path: 'y' },
      { tool: 'sandbox_exec', args: {}, path: 'z' },
    ];
    const [result] = await execute({ tools }, call('fetch_batch_to_sandbox', { requests }));
    expect(result).toEqual({
      results: [
        { error: 'Tool bad failed: 503' },
        { path: '/tmp/data/y', bytes: 8, lines: 2 },
        {
          error: 'There is no tool sandbox_exec. Only data source tools can be fetched. Use one of: a, bad.',
        },
      ],
    });
  });
});

describe('a call that cannot be made', () => {
  test('names the arguments that are wrong', async () => {
    const [result] = await execute(
      { tools: [aTool('a', { kind: 'Text', text: '' })] },
      call('a', { n: 'x' }),
    );
    expect(result?.error).toMatch(/^Wrong arguments for a: n: .*expected number/);
  });

  test('quotes arguments that are no JSON object', async () => {
    const broken = { ...call('a'), arguments: undefined, rawArguments: '{"n": ' };
    const [result] = await execute({ tools: [aTool('a', { kind: 'Text', text: '' })] }, broken);
    expect(result?.error).toBe('The arguments of a were not a JSON object: {"n": ');
  });

  test('lists the tools that there are', async () => {
    const [result] = await execute({ tools: [aTool('a', { kind: 'Text', text: '' })] }, call('nope'));
    expect(result?.error).toBe(
      'There is no tool nope. Use one of: sandbox_exec, fetch_to_sandbox, fetch_batch_to_sandbox, a.',
    );
  });

  test('of a tool that throws is answered with its message', async () => {
    const tools = [aTool('a', () => Promise.reject(new Error('boom')))];
    expect(await execute({ tools }, call('a'))).toEqual([{ error: 'Tool a failed: boom' }]);
  });
});

describe('without a sandbox', () => {
  test('a binary stream is read no further than a bound, and its size is said to be more', async () => {
    let read = 0;
    let closed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (const chunk = Buffer.alloc(64 * 1024); ; read += chunk.length) yield chunk;
      } finally {
        closed = true;
      }
    }
    const output: ToolOutput = { kind: 'Stream', chunks: endless(), suffix: '.tar.gz', binary: true };
    const registry = createRegistry({ tools: [aTool('a', output)] });
    const { result } = await registry.execute(call('a'), { signal });
    expect(result).toEqual({ error: expect.stringMatching(/no sandbox/), bytes: 'more than 1048576' });
    expect(read).toBeLessThan(2 * 1024 * 1024);
    expect(closed).toBe(true);
  });

  test('the sandbox tools are absent, text is cut to a preview, binary is an error', async () => {
    const tools = [
      aTool('text', { kind: 'Text', text: 'x'.repeat(5000) }),
      aTool('stream', streamOf('y'.repeat(5000), 'z'.repeat(5000))),
      aTool('bin', { kind: 'Binary', bytes: Buffer.alloc(10) }),
    ];
    const registry = createRegistry({ tools });
    expect(registry.definitions().map(({ name }) => name)).toEqual(['text', 'stream', 'bin']);
    const answers = [];
    for (const { definition } of tools)
      answers.push((await registry.execute(call(definition.name), { signal })).result);
    expect(answers).toEqual([
      { preview: 'x'.repeat(3072), truncated: true, bytes: 5000 },
      { preview: 'y'.repeat(3072), truncated: true },
      { error: expect.stringMatching(/no sandbox/), bytes: 10 },
    ]);
  });
});

describe('a lost sandbox', () => {
  test('is replaced once, and the model is told that its files are gone', async () => {
    const fresh = await startLocalSandbox();
    let replaced = 0;
    const registry = createRegistry({
      tools: [],
      sandbox,
      replaceSandbox: async () => {
        replaced += 1;
        return fresh;
      },
    });
    sandbox.lose();
    const exec = call('sandbox_exec', { command: 'echo alive' });
    const lost = await Promise.all([registry.execute(exec, { signal }), registry.execute(exec, { signal })]);
    for (const { result, outcome } of lost) {
      expect(outcome).toBe('SandboxLost');
      expect(result).toMatchObject({
        sandbox_lost: true,
        note: expect.stringMatching(/fresh, empty sandbox/),
      });
    }
    expect(replaced).toBe(1);
    expect(await registry.execute(exec, { signal })).toMatchObject({
      result: { stdout: 'alive\n' },
      outcome: 'Ok',
    });
    await fresh.cleanup();
  });

  test('without a replacement leaves the sources and takes the sandbox tools away', async () => {
    const registry = createRegistry({ tools: [aTool('a', { kind: 'Text', text: 'ok' })], sandbox });
    sandbox.lose();
    const { result } = await registry.execute(call('sandbox_exec', { command: 'true' }), { signal });
    expect(result.note).toMatch(/No other sandbox/);
    expect(registry.definitions().map(({ name }) => name)).toEqual(['a']);
    expect((await registry.execute(call('a'), { signal })).result).toEqual({ output: 'ok' });
  });
});

test('notes of the tools make one section, each text once', () => {
  const noted = (name: string, notes: string): Tool => {
    const tool = aTool(name, { kind: 'Text', text: '' });
    return { ...tool, definition: { ...tool.definition, notes } };
  };
  const registry = createRegistry({
    tools: [noted('a', 'GitLab.'), noted('b', 'GitLab.'), noted('c', 'Other.')],
  });
  expect(registry.notes()).toBe('## Data Source Notes\n\nGitLab.\n\nOther.');
  expect(createRegistry({ tools: [] }).notes()).toBe('');
});

test('an aborted call rejects with the reason instead of telling the model', async () => {
  const controller = new AbortController();
  const registry = createRegistry({ tools: [], sandbox });
  const running = registry.execute(call('sandbox_exec', { command: 'sleep 30' }), {
    signal: controller.signal,
  });
  setTimeout(() => controller.abort(new Error('cancelled by user')), 50);
  await expect(running).rejects.toThrow('cancelled by user');
});

test('two tools of one name are refused', () => {
  const tool = aTool('sandbox_exec', { kind: 'Text', text: '' });
  expect(() => createRegistry({ tools: [tool] })).toThrow('Two tools are named sandbox_exec');
});
