import { describe, expect, test } from 'vitest';
import { withoutAgentParts } from './agent-note.ts';

const MARKER = '<!-- hummingbird-session: {"id":"7","wf":"review","kid":"a","sig":"00"} -->';
const TRANSCRIPT = '<details>\n<summary>Agent transcript</summary>\n\nlong\n\n</details>';
const FINDINGS = '**One finding.**\n\n---\n\n### 1. A race (must)\n\n_Emphasis at the end._';

describe("an agent's note", () => {
  test.each([
    ['all of it', `${FINDINGS}\n\n${TRANSCRIPT}\n\n_Reply to this note to ask more: go on._\n\n_Model: m_1_`],
    ['no transcript', `${FINDINGS}\n\n_Reply to this note to ask more: go on._\n\n_Model: m_1_`],
    ['no invitation', `${FINDINGS}\n\n${TRANSCRIPT}\n\n_Model: m_`],
    ['a footer of its own', `${FINDINGS}\n\n${TRANSCRIPT}\n\n---\n\nWritten by a program.`],
    ['a transcript that is cut', `${FINDINGS}\n\n<details>\n<summary>Agent transcript</summary>\n\nlong`],
    [
      'a transcript that quotes another',
      `${FINDINGS}\n\n<details>\n<summary>Agent transcript</summary>\n\n${TRANSCRIPT}\n\nsecret\n\n</details>`,
    ],
    ['nothing but findings', FINDINGS],
  ])('is left with its findings: %s', (_what, text) => {
    expect(withoutAgentParts(`${text}\n\n${MARKER}`)).toBe(FINDINGS);
    expect(withoutAgentParts(`${text}\n\n${MARKER}\n\n`)).toBe(FINDINGS);
  });

  test('of earlier times has a blank in its marker', () => {
    const id = '0b7a52f4-6f4a-4d0e-9c63-1f7a3e1f9d11';
    expect(withoutAgentParts(`${FINDINGS}\n\n<!-- hummingbird-session ${id} -->`)).toBe(FINDINGS);
  });

  test("that is an answer of the operator's loses its mark", () => {
    expect(withoutAgentParts('Cancelled.\n\n<!-- hummingbird-answer: {"note":7} -->')).toBe('Cancelled.');
  });

  test('may have a marker with another word', () => {
    const text = 'x\n\n<!-- other: {} -->';
    expect(withoutAgentParts(text)).toBe(text);
    expect(withoutAgentParts(text, 'other')).toBe('x');
  });
});

test.each([
  `I do not understand this:\n\n${TRANSCRIPT}`,
  `> ${MARKER}\n\nwhat is that?`,
  `${MARKER}\n\n${TRANSCRIPT}`,
  `text <!-- hummingbird-sessions: {} -->`,
  `${MARKER} -->`,
  '_Model: T_',
  '-->',
  '',
])('any other note stays as it is: %j', (body) => {
  expect(withoutAgentParts(body)).toBe(body);
});
