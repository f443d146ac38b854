import { expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { specProblems } from './problems.ts';

const rules = (title: string) =>
  ({
    triggers: [
      {
        event: 'Pipeline',
        rules: [{ action: 'Allow', title: [title] }],
        ignoreUsers: [],
        ignoreBranches: [],
      },
    ],
  }) satisfies Partial<AgentWorkflow['spec']>;

const projects = (...paths: readonly string[]) => ({ projects: paths.map((path) => ({ path })) });

it.each([
  [
    'a title that is no regular expression',
    rules('/(/'),
    /^spec\.triggers\[Pipeline\]\.rules\[0\]\.title is not a reg/,
  ],
  [
    'a project in two spellings',
    projects('group/app', 'Group/App'),
    /Group\/App and group\/app are one project/,
  ],
  ['no time at all', { limits: { ...aWorkflow().spec.limits, timeout: '0s' } }, /timeout is 0s.*make it/],
])('%s is a problem', (_, spec, expected) => {
  expect(specProblems(aWorkflow(spec).spec)).toEqual([expect.stringMatching(expected)]);
});

it.each([
  ['a glob with brackets', rules('[WIP] (*')],
  ['a regular expression', rules('/^chore\\(deps\\)/')],
  ['two projects', projects('group/app', 'group/app2')],
])('%s is none', (_, spec) => {
  expect(specProblems(aWorkflow(spec).spec)).toEqual([]);
});
