import { expect, test } from 'vitest';
import { renderMarkdown, type TranscriptEntry } from './transcript.ts';
import { NO_USAGE } from './usage.ts';

const ts = '2026-11-30T00:00:00.000Z';
const header = { title: 'Analysis of group/app!7', facts: { model: 'demo' }, request: '{"iid":7}' };
const result = (text: string, iteration = 1): TranscriptEntry => ({
  kind: 'tool_result',
  iteration,
  ts,
  id: 'c',
  name: 'sandbox_exec',
  result: text,
  ok: true,
});

test('tells who said what, with results folded, tokens and cost', () => {
  const entries: TranscriptEntry[] = [
    { kind: 'warning', iteration: 1, ts, text: 'Hurry.' },
    {
      kind: 'model_call',
      iteration: 1,
      ts,
      usage: { ...NO_USAGE, inputTokens: 100, outputTokens: 5, cacheReadTokens: 60 },
      costUsd: 0.01234,
      finishReason: 'ToolCalls',
    },
    { kind: 'model_text', iteration: 1, ts, text: 'Looking.' },
    { kind: 'tool_call', iteration: 1, ts, id: 'c', name: 'sandbox_exec', args: '{"command":"ls"}' },
    result('{"stdout":"é"}'),
    { kind: 'error', iteration: 2, ts, text: 'busy\nstill' },
  ];
  expect(renderMarkdown(header, entries)).toBe(`# Analysis of group/app!7

- model: demo

**Request**

\`\`\`
{"iid":7}
\`\`\`

## Iteration 1

> Told to the model: Hurry.

_100 tokens in (60 cached), 5 out, $0.0123, ended by ToolCalls_

**Model**

Looking.

**Call** \`sandbox_exec\`

\`\`\`json
{"command":"ls"}
\`\`\`

<details><summary>Result of sandbox_exec, 15 bytes</summary>

\`\`\`json
{"stdout":"é"}
\`\`\`

</details>

## Iteration 2

> **Error:** busy
> still
`);
});

test('a result cannot close its own fence', () => {
  const text = renderMarkdown(header, [result('````\n# escaped')]);
  expect(text).toContain('`````json\n````\n# escaped\n`````');
});

test('a long result is shortened and says by how much', () => {
  const text = renderMarkdown(header, [result('x'.repeat(5000))]);
  expect(text).toContain(`${'x'.repeat(4000)}\n… 1000 more characters`);
});

test('a long transcript keeps its head and its newest entries whole', () => {
  const entries = Array.from({ length: 100 }, (_, n) => result('x'.repeat(500), n + 1));
  const text = renderMarkdown(header, entries, { maxChars: 5000 });
  expect(text.length).toBeLessThanOrEqual(5001);
  expect(text).toMatch(/^# Analysis/);
  expect(text).toMatch(/\d+ entries left out/);
  expect(text).toContain('## Iteration 100');
  expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
});
