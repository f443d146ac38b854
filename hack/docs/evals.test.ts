// What docs/evals.md says, compared with the command and the form of a case.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DeliveryCase } from '../../src/evals/delivery-case.ts';
import { codeWords, section, tableRows } from './markdown.ts';
import { root } from './sources.ts';

const PAGE = 'docs/evals.md';

it('the page has exactly the flags of hummingbird eval', () => {
  const help = execFileSync(process.execPath, [join(root, 'src/main.ts'), 'eval', '--help'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  const flags = [...help.matchAll(/^\s+(--[a-z-]+)/gm)].map(([, flag = '']) => flag);
  const told = tableRows(section(PAGE, 'Commands')).map(([cell = '']) => codeWords(cell)[0] ?? '');
  expect(flags.length).toBeGreaterThan(8);
  expect(told.toSorted()).toEqual(flags.toSorted());
});

it('the page names only fields that a case has', () => {
  const [told = ''] = section(PAGE, 'Chart bumps').split('In the order of importance');
  const named = tableRows(told).flatMap(([cell = '']) => codeWords(cell));
  const fields = Object.keys(DeliveryCase.shape);
  const wanted = Object.keys(DeliveryCase.shape.want.shape).map((field) => `want.${field}`);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((field) => ![...fields, ...wanted].includes(field))).toEqual([]);
  expect(wanted.filter((field) => !named.includes(field))).toEqual([]);
});
