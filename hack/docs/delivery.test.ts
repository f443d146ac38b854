// What docs/delivery.md says of edits, compared with the code.
import { expect, it } from 'vitest';
import { DENIED_PATHS } from '../../src/delivery/edits/reach/out-of-reach.ts';
import { REFUSAL_REASONS } from '../../src/delivery/edits/refusal.ts';
import { LEVERS } from '../../src/delivery/levers.ts';
import { DELIVERY_PROMPTS } from '../../src/delivery/prompts/system.ts';
import { Edit, Migration, Verdict } from '../../src/delivery/verdict.ts';
import { codeWords, section, tableRows } from './markdown.ts';
import { filesBelow, read } from './sources.ts';

const PAGE = 'docs/delivery.md';
const EDITS = section(PAGE, 'What an edit may do');

const firstWords = (text: string): readonly string[] =>
  tableRows(text).map((cells) => codeWords(cells[0] ?? '')[0] ?? cells[0] ?? '');

it('the page has exactly the fields of an edit', () => {
  const [fields = ''] = EDITS.split('### The inventory');
  expect(firstWords(fields)).toEqual(Object.keys(Edit.shape));
});

it('the page has exactly the reasons of a refusal', () => {
  const [, reasons = ''] = EDITS.split('### In which order an edit is checked');
  expect([...firstWords(reasons)].sort()).toEqual([...REFUSAL_REASONS].sort());
});

it('the page names only paths that are denied', () => {
  const [, denied = ''] = EDITS.split('### What no configuration opens');
  const named = codeWords(denied).filter((word) => /^[.*]|^Jenkinsfile$|^CODEOWNERS$/.test(word));
  expect(named.length).toBeGreaterThan(5);
  const bare = (word: string) => word.replace(/\/$/, '');
  const isDenied = (word: string) =>
    DENIED_PATHS.some((pattern) => pattern.includes(`/${bare(word)}`) || pattern.endsWith(bare(word)));
  expect(named.filter((word) => !isDenied(word))).toEqual([]);
});

it('every guarantee of the page is in the name of a test', () => {
  const tests = filesBelow('src/delivery', '.test.ts').map(read).join('\n');
  const numbers = firstWords(section(PAGE, 'Guarantees'));
  expect(numbers.length).toBeGreaterThan(6);
  expect(numbers.filter((number) => !tests.includes(`'${number}: `))).toEqual([]);
});

const DECIDED = section(PAGE, 'What is decided, and by whom');
const below = (heading: string): string => DECIDED.split(`### ${heading}\n`)[1]?.split('\n### ')[0] ?? '';

it('the page has exactly the fields of both answers', () => {
  expect(firstWords(below('The answers'))).toEqual([
    ...Object.keys(Verdict.shape),
    ...Object.keys(Migration.shape),
  ]);
});

it('the page has exactly the prompts and the levers', () => {
  expect(firstWords(below('The prompts')).toSorted()).toEqual(
    DELIVERY_PROMPTS.map((name) => `prompts/delivery/${name}.md`).toSorted(),
  );
  expect(firstWords(below('The levers'))).toEqual([...LEVERS]);
});

it('the page and the prompt describe an edit in the same words', () => {
  const triage = read('prompts/delivery/triage.md');
  for (const [field, words] of [
    ['path', 'copied from the inventory'],
    ['from', 'the value that the inventory shows now'],
    ['to', 'the new value'],
    ['rationale', 'why this value has to change with this bump'],
  ] as const) {
    expect(EDITS).toMatch(new RegExp(`\\| \`${field}\` .*${words}`));
    expect(triage.replaceAll('copy both from', 'copied from')).toContain(words);
  }
});
