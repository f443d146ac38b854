import { expect, test } from 'vitest';
import { reportParts } from './report-parts.ts';

test('the headings of a report are its causes, each with its kind', () => {
  const report = [
    '**2 root causes in 3 failed jobs**',
    '### 1. The image is gone (infrastructure)',
    'The registry (which is ours) says so.',
    '### 2. A type is wrong (**change**, quite sure)',
    '### Not looked at',
  ].join('\n\n');
  expect(reportParts(report)).toMatchObject({
    causes: ['### 1. The image is gone (infrastructure)', '### 2. A type is wrong (**change**, quite sure)'],
    kinds: ['infrastructure', 'change'],
  });
});

test('the one cause may be a sentence', () => {
  expect(reportParts('The unit test waits too short a time (existing).\n\nRetry it.').kinds).toEqual([
    'existing',
  ]);
});

test('a kind counts where it opens the brackets only', () => {
  expect(reportParts('### 1. A limit (no change of this branch) (infrastructure)').kinds).toEqual([
    'infrastructure',
  ]);
  expect(reportParts('### 1. It broke (changed lines)').kinds).toEqual([]);
});

test('folds, code and quotations are not what the report says itself', () => {
  const report = [
    'Said. `inline`',
    '> quoted',
    '<details><summary>Evidence</summary>',
    'folded',
    '</details>',
    '```text',
    'fenced (change)',
    '```',
    'Said too.',
  ].join('\n');
  const { prose, kinds } = reportParts(report);
  expect(prose).toMatch(/Said\.[\s\S]*Said too\./);
  expect(prose).not.toMatch(/inline|quoted|folded|fenced/);
  expect(kinds).toEqual([]);
});

test('a block of code that nobody ends hides what comes after it', () => {
  expect(reportParts('Said.\n```\nfenced').prose).not.toContain('fenced');
});
