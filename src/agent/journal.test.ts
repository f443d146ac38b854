import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type JournalEntry, parseJournalEntry } from './journal.ts';
import { recordLoop } from './journal-record.ts';
import { replayLoop } from './journal-replay.ts';
import type { LoopOptions } from './loop.ts';
import { type Model, ModelError, type ModelResponse } from './models/port.ts';
import { defineParameters } from './tools/parameters.ts';
import type { Tool } from './tools/port.ts';
import { createRegistry } from './tools/registry.ts';
import { NO_USAGE } from './usage.ts';

const asksTool = (id: string): ModelResponse => ({
  text: '',
  toolCalls: [{ id, name: 'read', arguments: {}, rawArguments: '{}' }],
  usage: NO_USAGE,
  finishReason: 'ToolCalls',
  content: { call: id },
});
const answers = (text: string): ModelResponse => ({
  text,
  toolCalls: [],
  usage: NO_USAGE,
  finishReason: 'Stop',
  content: { text },
});

/** Gives or throws these, one a call; without any left it fails the test that asked. */
function aModel(...turns: (ModelResponse | ModelError)[]): Model {
  return {
    name: 'm',
    provider: 'test',
    makeUserContent: (text) => ({ text }),
    makeToolResponses: (results) => results.map(({ call, result }) => ({ id: call.id, result })),
    toCanonical: () => [],
    fromCanonical: () => [],
    async generate() {
      const turn = turns.shift();
      if (turn === undefined) throw new Error('the model was asked');
      if (turn instanceof ModelError) throw turn;
      return turn;
    },
  };
}

function aTool(text: string): Tool {
  const { schema, parse } = defineParameters(z.strictObject({}));
  const definition = { name: 'read', description: 'reads', parameters: schema };
  return { definition, parse, run: async () => ({ kind: 'Text', text }) };
}

async function record(more: Partial<LoopOptions> = {}): Promise<readonly JournalEntry[]> {
  const lines: string[] = [];
  const options: LoopOptions = {
    model: aModel(
      asksTool('1'),
      new ModelError('busy', { retryable: true, status: 503 }),
      answers('# Report'),
    ),
    system: 'You are tested.',
    contents: [{ text: 'go' }],
    tools: createRegistry({ tools: [aTool('found s3cret')] }),
    limits: { maxIterations: 5, contextTokens: 1000 },
    signal: new AbortController().signal,
    clock: { now: () => 0, sleep: async () => undefined },
    ...more,
  };
  await recordLoop(options, (entry) => lines.push(JSON.stringify(entry)));
  return lines.map(parseJournalEntry);
}

const change = <Kind extends JournalEntry['kind']>(
  journal: readonly JournalEntry[],
  kind: Kind,
  changed: (entry: Extract<JournalEntry, { kind: Kind }>) => JournalEntry,
): readonly JournalEntry[] =>
  journal.map((entry) =>
    entry.kind === kind ? changed(entry as Extract<JournalEntry, { kind: Kind }>) : entry,
  );

describe('a journal', () => {
  test('tells what the world answered, in order', async () => {
    expect((await record()).map(({ kind }) => kind)).toEqual([
      'Begin',
      'Answer',
      'Checkpoint',
      'Tool',
      'Checkpoint',
      'Failure',
      'Answer',
      'Checkpoint',
      'End',
    ]);
  });

  test('holds none of the secrets that are redacted, and can be replayed all the same', async () => {
    const model = aModel(asksTool('1'), { ...answers('It says s3cret.'), content: { text: 's3cret' } });
    const journal = await record({ model, redact: (text) => text.replaceAll('s3cret', '[redacted]') });
    expect(JSON.stringify(journal)).not.toContain('s3cret');
    const { result, recorded } = await replayLoop(journal, { adapter: aModel() });
    expect(result).toEqual(recorded);
  });

  test('of a loop that was stopped says why, and keeps nothing that came later', async () => {
    const stop = new AbortController();
    const late = Promise.withResolvers<ModelResponse>();
    const model: Model = { ...aModel(), generate: () => late.promise };
    setTimeout(() => stop.abort(new DOMException('too long', 'TimeoutError')), 5);
    const journal = await record({ model, signal: stop.signal });
    late.resolve(answers('too late'));
    expect(journal.slice(1)).toMatchObject([
      { kind: 'Aborted', name: 'TimeoutError', message: 'too long' },
      { kind: 'End', result: { kind: 'Cancelled', reason: 'timeout' } },
    ]);
    const { result } = await replayLoop(journal, { adapter: aModel() });
    expect(result).toMatchObject({ kind: 'Cancelled', reason: 'timeout' });
  });

  test('that is damaged is refused with the place', async () => {
    const [begin = {}] = await record();
    expect(() => parseJournalEntry(JSON.stringify({ ...begin, limits: { maxIterations: 'x' } }))).toThrow(
      /journal cannot be read[\s\S]*limits\.maxIterations/,
    );
  });
});

describe('a replay', () => {
  test('asks no model, runs no tool, waits for nothing, and ends the same', async () => {
    const { result, recorded, unused } = await replayLoop(await record(), { adapter: aModel() });
    expect(result).toEqual(recorded);
    expect(result).toMatchObject({ kind: 'Answered', text: '# Report', toolCalls: 1 });
    expect(unused).toEqual([]);
  });

  test('goes on from a checkpoint and repeats nothing before it', async () => {
    const journal = await record();
    const { result, checkpoints, unused } = await replayLoop(journal, {
      adapter: aModel(),
      afterCheckpoints: 2,
    });
    expect(result).toMatchObject({ text: '# Report', toolCalls: 1, iterations: 2 });
    expect(checkpoints.map(({ sequence }) => sequence)).toEqual([3]);
    expect(unused).toEqual([]);
  });

  test('in which the loop asks something else than it did says what', async () => {
    const other = change(await record(), 'Begin', (begin) => ({ ...begin, system: 'You are another.' }));
    const { result } = await replayLoop(other, { adapter: aModel() });
    expect(result).toMatchObject({
      kind: 'Failed',
      reason: 'unexpected',
      detail: expect.stringMatching(/did not ask this: a model request of 1 entries with 1 tools/),
    });
  });

  test('in which a tool answers otherwise does not come to the same end', async () => {
    const other = change(await record(), 'Tool', (entry) => ({
      ...entry,
      execution: { result: { output: 'else' }, outcome: 'Ok' },
    }));
    const { result, unused } = await replayLoop(other, { adapter: aModel() });
    expect(result).toMatchObject({ kind: 'Failed', reason: 'unexpected' });
    expect(unused.map(({ kind }) => kind)).toEqual(['Failure', 'Answer']);
  });

  test('of half a journal is refused', async () => {
    const journal = await record();
    await expect(replayLoop(journal.slice(0, -1), { adapter: aModel() })).rejects.toThrow(
      /not of a whole loop/,
    );
    await expect(replayLoop(journal, { adapter: aModel(), afterCheckpoints: 4 })).rejects.toThrow(
      /has 3 stored checkpoints, not 4/,
    );
  });
});
