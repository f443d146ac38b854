import { expect, test } from 'vitest';
import { builtinPrompts, loadBuiltinPrompt } from './prompt-files.ts';
import {
  BASE_SYSTEM_PROMPT,
  CONTINUATION_PROMPT,
  closingText,
  ephemeralText,
  SANDBOX_PROMPT,
  systemPrompt,
} from './prompts.ts';
import type { StopRule } from './stop-rules.ts';

test('the system prompt has its parts in order: base, sandbox, notes, workflow, continuation', () => {
  const parts = {
    workflow: '# Workflow\n',
    toolNotes: '## Data Source Notes\n\nX',
    hasSandbox: true,
    continuation: true,
  };
  expect(systemPrompt(parts)).toBe(
    [BASE_SYSTEM_PROMPT, SANDBOX_PROMPT, '## Data Source Notes\n\nX', '# Workflow', CONTINUATION_PROMPT].join(
      '\n\n',
    ),
  );
});

test('without a sandbox nothing is said of one', () => {
  const text = systemPrompt({ workflow: 'W', toolNotes: '', hasSandbox: false, continuation: false });
  expect(text).toBe(`${BASE_SYSTEM_PROMPT}\n\nW`);
  expect(text).not.toMatch(/sandbox/i);
});

test('the sandbox prompt names the tools and the result fields that there are', () => {
  for (const word of ['fetch_to_sandbox', 'fetch_batch_to_sandbox', 'saved_to', 'stdout_file', '4096']) {
    expect(SANDBOX_PROMPT).toContain(word);
  }
});

test.each(['nope', '../loop/base', ''])(
  'an unknown built-in prompt (%j) is refused with the list of those there are',
  async (name) => {
    await expect(loadBuiltinPrompt(name)).rejects.toThrow(/Use one of: analyze-failures/);
  },
);

test('a built-in prompt is read once, and again only when it could not be read', async () => {
  const reads: string[] = [];
  const prompt = builtinPrompts(async (name) => {
    reads.push(name);
    if (reads.length === 1) throw new Error('too many open files');
    return `You look at ${name}.`;
  });
  await expect(prompt('code-review')).rejects.toThrow('too many open files');
  expect(await prompt('code-review')).toBe('You look at code-review.');
  expect(await prompt('code-review')).toBe('You look at code-review.');
  expect(reads).toHaveLength(2);
});

test('nothing is said to the model in a normal turn without a nudge', () => {
  const outlook = {
    limits: { maxIterations: 9, contextTokens: 9 },
    iteration: 1,
    lastInputTokens: 0,
    money: undefined,
  };
  expect(ephemeralText({ level: 'Normal' }, outlook, undefined)).toBeUndefined();
  expect(ephemeralText({ level: 'Hard', rule: 'contextLimit' }, outlook, 'MalformedCall')).toMatch(
    /^Your last tool call could not be read[\s\S]*\n\nThis is the last turn \(9 tokens/,
  );
});

test('every way to end without a report has words for the merge request', () => {
  const rules: StopRule[] = [
    'iterationLimit',
    'contextLimit',
    'budget',
    'outputLimit',
    'noAnswer',
    'blocked',
    'modelError',
    'cancelled',
    'timeout',
    'checkpoint',
    'unexpected',
  ];
  const limits = { maxIterations: 30, contextTokens: 60_000, budgetUsd: 2 };
  for (const rule of rules) expect(closingText(rule, limits, 'why.')).toMatch(/^(The|This) .*[^.]\.$/);
});
