import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ScriptedTurn } from '../../../test/fakes/model-http.ts';
import { PROVIDERS, type Provider, type ProviderUnderTest } from '../../../test/fakes/providers.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import type { CanonicalMessage, Contents, Model } from './port.ts';

/** Two turns with calls, a failed one among them, and a report. */
const TURNS: readonly ScriptedTurn[] = [
  {
    text: 'Looking.',
    toolCalls: [
      { name: 'run', args: { cmd: 'ls' } },
      { name: 'run', args: { cmd: 'pwd' } },
    ],
  },
  { toolCalls: [{ name: 'look', args: {} }] },
  { text: '# Report' },
];

const tools = ['run', 'look'].map((name) => ({
  name,
  description: name,
  parameters: { type: 'object', properties: { cmd: { type: 'string' } } },
}));

async function converse({ model }: ProviderUnderTest): Promise<Contents> {
  const contents: unknown[] = [model.makeUserContent('{"iid":1}')];
  for (const _turn of TURNS) {
    const answer = await model.generate({ system: 'sys', contents, tools });
    contents.push(answer.content);
    if (answer.toolCalls.length === 0) break;
    const results = answer.toolCalls.map((call) => ({ call, result: { stdout: `of ${call.name}` } }));
    contents.push(...model.makeToolResponses(results));
  }
  return contents;
}

/** As it is in a file. */
const saved = (model: Model, contents: Contents): CanonicalMessage[] =>
  JSON.parse(JSON.stringify(model.toCanonical(contents)));

/** What a conversation says, whichever ids pair its calls and results. */
function told(messages: readonly CanonicalMessage[]): unknown {
  const order = new Map<string, number>();
  return messages.map((message) => {
    if (message.role === 'user') return message;
    if (message.role === 'tool') {
      return {
        role: 'tool',
        of: order.get(message.tool_call_id),
        name: message.name,
        content: message.content,
      };
    }
    const calls = (message.tool_calls ?? []).map((call) => {
      order.set(call.id, order.size);
      return [call.function.name, JSON.parse(call.function.arguments)];
    });
    return { role: 'assistant', content: message.content, calls };
  });
}

/** The two services of Gemini share one form. */
const family = ({ name }: Provider) => name.split(' ')[0];

const directions = PROVIDERS.flatMap((from) =>
  PROVIDERS.filter((to) => family(to) !== family(from)).map((to): [string, string, Provider, Provider] => [
    from.name,
    to.name,
    from,
    to,
  ]),
);

describe.each(directions)('a session of %s resumed with %s', (_from, _to, from, to) => {
  let http: HttpClient;
  let first: ProviderUnderTest;
  let second: ProviderUnderTest;

  beforeEach(async () => {
    http = createHttpClient();
    first = await from.start(http, (call) => TURNS[call - 1] ?? { text: 'and back' });
    second = await to.start(http, (call) => (call === 1 ? (TURNS[0] ?? {}) : { text: 'answered' }));
  });
  afterEach(async () => {
    await http.close();
    await first.stop();
    await second.stop();
  });

  test('is accepted with its tool calls, goes on with more, and returns to where it came from', async () => {
    const original = saved(first.model, await converse(first));
    const resumed = [...second.model.fromCanonical(original), second.model.makeUserContent('Why?')];
    const answer = await second.model.generate({ system: 'sys', contents: resumed, tools });
    const results = answer.toolCalls.map((call) => ({ call, result: { ok: true } }));
    const further = [...resumed, answer.content, ...second.model.makeToolResponses(results)];
    await second.model.generate({ system: 'sys', contents: further, tools, ephemeral: 'hurry' });
    expect(second.refusals).toEqual([]);

    const again = saved(second.model, further);
    expect(told(again.slice(0, original.length))).toEqual(told(original));
    expect(again).toHaveLength(original.length + 4);

    const back = [...first.model.fromCanonical(again), first.model.makeUserContent('And?')];
    await first.model.generate({ system: 'sys', contents: back, tools });
    expect(first.refusals).toEqual([]);
    expect(told(saved(first.model, back).slice(0, again.length))).toEqual(told(again));
  });

  test("keeps the first provider's own data for its return, and does not send it elsewhere", async () => {
    const original = saved(first.model, await converse(first));
    const resumed = [...second.model.fromCanonical(original), second.model.makeUserContent('Why?')];
    expect(extras(saved(second.model, resumed))).toEqual(extras(original));
    await second.model.generate({ system: 'sys', contents: resumed, tools });
    for (const extra of extras(original)) {
      for (const signature of JSON.stringify(extra).match(/"thoughtSignature":"[^"]+"/g) ?? [])
        expect(JSON.stringify(second.requests)).not.toContain(signature);
    }
    expect(JSON.stringify(second.requests)).not.toContain('extra');
  });
});

const extras = (messages: readonly CanonicalMessage[]) =>
  messages.flatMap((message) => (message.role === 'assistant' && message.extra ? [message.extra] : []));
