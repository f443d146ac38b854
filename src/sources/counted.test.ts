import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { ToolOutput } from '../agent/tools/port.ts';
import { counted } from './counted.ts';
import { sourceMetrics } from './metrics.ts';
import { sourceTool } from './source-tool.ts';

async function* bytes(end?: Error): AsyncGenerator<Uint8Array> {
  yield Buffer.from('one');
  yield Buffer.from('two');
  if (end) throw end;
}

const stream = (end?: Error, incomplete?: string): ToolOutput => ({
  ...{ kind: 'Stream', chunks: bytes(end), suffix: '.log', binary: false },
  incomplete: () => incomplete,
});

/** Outcomes that were counted after one call, which reads at most `read` chunks. */
async function outcomes(
  answer: () => ToolOutput,
  { read = 9, signal = AbortSignal.timeout(60_000) }: { read?: number; signal?: AbortSignal } = {},
): Promise<readonly unknown[]> {
  const registry = new Registry();
  const run = async () => answer();
  const spec = { name: 'builds_get', description: '', schema: z.object({}), run };
  const tool = counted(sourceTool({ name: 'Builds' }, spec), sourceMetrics(registry));
  try {
    const output = await tool.run({}, { signal });
    let left = read;
    if (output.kind === 'Stream') for await (const _ of output.chunks) if (--left === 0) break;
  } catch {
    // Counted all the same.
  }
  const [metric] = await registry.getMetricsAsJSON();
  return (metric?.values ?? []).map(({ labels, value }) => ({ ...labels, value }));
}

const once = (outcome: string) => [{ tool: 'builds_get', outcome, value: 1 }];
const fails = (): never => {
  throw new TypeError('a bug');
};

test.each<[string, () => ToolOutput, string]>([
  ['a text', () => ({ kind: 'Text', text: 'x' }), 'Ok'],
  ['a refusal', () => ({ kind: 'Error', message: 'no' }), 'Error'],
  ['a whole stream', () => stream(), 'Ok'],
  ['a stream that says what is missing', () => stream(undefined, 'the rest'), 'Partial'],
  ['a stream that breaks off', () => stream(new Error('gone')), 'Partial'],
  ['what nobody expected', fails, 'Error'],
])('%s is counted once', async (_what, answer, outcome) => {
  expect(await outcomes(answer)).toEqual(once(outcome));
});

test('a stream that nobody wants to the end is no failure', async () => {
  expect(await outcomes(() => stream(new Error('gone')), { read: 1 })).toEqual(once('Ok'));
});

test('what was cancelled is not counted', async () => {
  const signal = AbortSignal.abort();
  expect(await outcomes(fails, { signal })).toEqual([]);
  expect(await outcomes(() => stream(new Error('aborted')), { signal })).toEqual([]);
});
