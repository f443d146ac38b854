import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CASES, loadCases } from './load-cases.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hummingbird-cases-'));
  await cp(CASES, folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

const CASE = (over: string): string =>
  `name: one\npath: values\nsynthetic: true\nsubject: s\nbump: {chart: a, from: 1.0.0, to: 2.0.0}\nbefore: {}\nafter: {}\nwant: {class: escalate}\n${over}`;

it.each([
  ['a path that does not exist', 'vlaues/one.yaml', CASE(''), /there is no path vlaues/],
  ['a field that does not exist', 'values/one.yaml', CASE('wants: {}\n'), /Unrecognized key/],
  [
    'a case of another path',
    'triage/one.yaml',
    CASE(''),
    /one of the path values stands in the folder triage/,
  ],
  [
    'a name that is taken',
    'values/one.yaml',
    CASE('').replace('name: one', 'name: section-has-no-home'),
    /two cases are named section-has-no-home/,
  ],
  [
    'a mechanical migration without a document',
    'values/one.yaml',
    CASE('').replace('escalate', 'mechanical'),
    /want.document/,
  ],
  ['an incident that may be real', 'values/one.yaml', CASE('').replace('true', 'false'), /synthetic/],
])('refuses %s: what is not measured must not go unsaid', async (_, path, text, message) => {
  const file = join(folder, path);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, text);
  await expect(loadCases(pathToFileURL(`${folder}/`))).rejects.toThrow(message);
});
