import { describe, expect, it } from 'vitest';
import { type GenerateRequest, type Model, ModelError, type ModelResponse } from '../agent/models/port.ts';
import { askWith, parseAnswer } from './ask.ts';

const question = { system: 's', user: 'u', name: 'verdict', schema: { type: 'object' } };
const usage = { inputTokens: 10, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 };

function aModel(...turns: readonly (Partial<ModelResponse> | Error)[]) {
  const requests: GenerateRequest[] = [];
  const model: Model = {
    name: 'm',
    provider: 'openai',
    async generate(request) {
      const turn = turns[requests.length] ?? { text: '{}' };
      requests.push(request);
      if (turn instanceof Error) throw turn;
      return { text: '', toolCalls: [], usage, finishReason: 'Stop', content: {}, ...turn };
    },
    makeUserContent: (text) => ({ text }),
    makeToolResponses: () => [],
    toCanonical: () => [],
    fromCanonical: () => [],
  };
  return { model, requests };
}
const busy = new ModelError('busy', { retryable: true, retryAfterMs: 7 });

describe('askWith', () => {
  it('asks one question in the form of its schema and counts what it cost', async () => {
    const { model, requests } = aModel({ text: '{"a":1}' });
    const used: unknown[] = [];
    const answer = await askWith(model, { onUsage: (one) => used.push(one) })(question);
    expect(answer).toEqual({ kind: 'Answered', value: { a: 1 } });
    expect(requests).toEqual([
      {
        system: 's',
        contents: [{ text: 'u' }],
        tools: [],
        answer: { name: 'verdict', schema: { type: 'object' } },
      },
    ]);
    expect(used).toEqual([usage]);
  });

  it('tries again what may pass, three times at the most', async () => {
    const pauses: number[] = [];
    const options = { pause: async (ms: number) => void pauses.push(ms) };
    expect(await askWith(aModel(busy, { text: '{}' }).model, options)(question)).toMatchObject({
      kind: 'Answered',
    });
    const { model, requests } = aModel(busy, busy, busy, { text: '{}' });
    expect(await askWith(model, options)(question)).toEqual({ kind: 'Unreachable', message: 'busy' });
    expect(requests).toHaveLength(3);
    expect(pauses).toEqual([7, 7, 7]);
  });

  it.each([
    ['a wrong key', new ModelError('401', { retryable: false, status: 401 }), 'Unreachable'],
    ['a refusal', { finishReason: 'Safety', detail: 'no' } as const, 'Unreachable'],
    ['a cut answer', { finishReason: 'Length', text: '{"a":' } as const, 'Malformed'],
  ])('makes %s an answer', async (_, turn, kind) => {
    expect(await askWith(aModel(turn).model)(question)).toMatchObject({ kind });
  });

  it('throws when it is aborted, and what nobody foresaw', async () => {
    const reason = new Error('stop');
    await expect(askWith(aModel(busy).model)(question, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = askWith(aModel(new ModelError('x', { retryable: true, retryAfterMs: 60_000 })).model)(
      question,
      controller.signal,
    );
    setTimeout(() => controller.abort(reason), 10);
    await expect(waiting).rejects.toBe(reason);
    const bug = new TypeError('bug');
    await expect(askWith(aModel(bug).model)(question)).rejects.toBe(bug);
  });
});

describe('parseAnswer', () => {
  it.each([
    ['plain', '{"a": 1}'],
    ['in a fence', 'Sure:\n```json\n{"a": 1}\n```\nDone.'],
    ['behind thoughts', '<think>{"a": 2} or not?</think>{"a": 1}'],
    ['behind words', 'The answer is {"a": 1}'],
  ])('finds an object that is %s', (_, text) => {
    expect(parseAnswer(text)).toEqual({ kind: 'Answered', value: { a: 1 } });
  });

  it.each([
    ['', /no JSON object/],
    ['none', /no JSON object/],
    ['{"a": 1', /no JSON$/],
    ['{"a": 1} and {"a": 2}', /no JSON$/],
    [`{"a": "${'x'.repeat(4 * 1024 * 1024)}"}`, /more than/],
  ])('refuses %#', (text, message) => {
    expect(parseAnswer(text)).toEqual({ kind: 'Malformed', message: expect.stringMatching(message) });
  });
});
