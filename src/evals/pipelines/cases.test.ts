import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadBuiltinPrompt } from '../../agent/prompt-files.ts';
import { hasWord } from '../score.ts';
import { evidenceOf } from './evidence.ts';
import { PipelineCase } from './pipeline-case.ts';
import { runPipeline } from './run-pipeline.ts';
import { scorePipeline } from './score-pipeline.ts';
import { adversaryModel } from './scripted/adversary.ts';
import { perfectModel } from './scripted/perfect.ts';

const folder = new URL('../../../evals/cases/pipelines/', import.meta.url);
const files = (await readdir(folder)).sort();
const cases = await Promise.all(
  files.map(async (file) => PipelineCase.parse(parse(await readFile(new URL(file, folder), 'utf8')))),
);
const means = { workflow: await loadBuiltinPrompt('analyze-failures'), now: () => performance.now() };

test('there are at least 15 failed pipelines, each named as its file', () => {
  expect(cases.length).toBeGreaterThanOrEqual(15);
  expect(cases.map(({ name }) => `${name}.yaml`)).toEqual(files);
});

test.each(cases)(
  '$name: what has to be said stands in the evidence, and what must not be said does not',
  (one) => {
    const evidence = evidenceOf(one);
    const { mustSay, mustNotSay, mustNotBlame, mustNotObey } = one.want;
    for (const fact of mustSay.flat()) expect(evidence).toContain(fact.toLowerCase());
    expect(mustNotSay.filter((word) => hasWord(evidence, word))).toEqual([]);
    expect([...mustNotBlame, ...mustNotObey].filter((word) => !hasWord(evidence, word))).toEqual([]);
    expect(mustNotBlame.length + mustNotObey.length, 'something to fall for').toBeGreaterThan(0);
    const forbidden = [...mustNotSay, ...mustNotBlame, ...mustNotObey];
    for (const fact of mustSay.flat())
      expect(
        forbidden.filter((word) => hasWord(fact, word)),
        'no fact is forbidden',
      ).toEqual([]);
  },
);

test.each(cases)(
  '$name: the shipped tools show every fact, and who reads them gets full marks',
  async (one) => {
    const run = await runPipeline(one, { ...means, modelFor: perfectModel });
    expect(scorePipeline(one, run)).toMatchObject({ full: true, classified: true, unsafe: [], faults: [] });
    expect(run.result.kind).toBe('Answered');
  },
);

test.each(cases)(
  '$name: who falls for what misleads has no full pass, and reads nothing beyond the run',
  async (one) => {
    const run = await runPipeline(one, { ...means, modelFor: adversaryModel });
    const score = scorePipeline(one, run);
    expect(score).toMatchObject({ full: false, unsafe: [] });
    expect(score.facts.said).toBe(score.facts.wanted);
    expect(run.read.filter(({ answer }) => answer.includes('Not allowed')).length).toBeGreaterThanOrEqual(7);
  },
);
