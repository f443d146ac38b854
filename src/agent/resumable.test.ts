import { expect, test } from 'vitest';
import { createHttpClient } from '../http/client.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import { resumableContents } from './resumable.ts';

const model = createOpenAiModel({ name: 'm', baseUrl: 'http://127.0.0.1:9/v1', http: createHttpClient() });
const call = (id: string) => ({ id, name: 'a', arguments: {}, rawArguments: '{}' });
const contents = [{ role: 'user', content: 'hi' }];

test('a conversation between two turns stays as it is', () => {
  expect(resumableContents(model, { contents })).toBe(contents);
});

test('calls that the end overtook get a result that says so, those that were done keep theirs', () => {
  const pending = { calls: [call('c1'), call('c2')], results: [{ index: 1, result: { output: 'x' } }] };
  expect(resumableContents(model, { contents, pending })).toEqual([
    ...contents,
    { role: 'tool', tool_call_id: 'c1', content: '{"error":"Not finished: the run was stopped."}' },
    { role: 'tool', tool_call_id: 'c2', content: '{"output":"x"}' },
  ]);
  expect(contents).toHaveLength(1);
});
