import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { ObjectMeta } from '../../crds/meta.ts';
import { type Applied, type ConfigurationObserved, decideConfiguration, FROM_FILE } from './decide.ts';

const wanted = (name: string, digest = 'd') => ({ workflow: aWorkflow({}, { name }), digest });
const fromFile = (name: string, metadata: Partial<ObjectMeta> = {}, suspend = false): AgentWorkflow =>
  aWorkflow({ suspend }, { name, uid: 'u', labels: FROM_FILE, ...metadata });
const applied = (name: string, more: Partial<Applied> = {}) =>
  new Map([[name, { digest: 'd', uid: 'u', generation: 1, ...more }]]);

function actions(observed: Partial<ConfigurationObserved>): readonly string[] {
  const nothing = { wanted: [], present: [], applied: new Map(), busy: new Set<string>() };
  return decideConfiguration({ ...nothing, ...observed }).map((action) => {
    const { metadata } = action.kind === 'Apply' ? action.wanted.workflow : action.workflow;
    return `${action.kind} ${metadata.name}`;
  });
}

describe('a workflow of the file', () => {
  it.each<[string, Partial<ConfigurationObserved>, readonly string[]]>([
    ['is applied when it is not there', {}, ['Apply a']],
    [
      'is applied by a process that has not done so, whatever is there',
      { present: [fromFile('a')] },
      ['Apply a'],
    ],
    ['is left alone once it is there as applied', { present: [fromFile('a')], applied: applied('a') }, []],
    [
      'is applied again when the file says something else',
      { present: [fromFile('a')], applied: applied('a', { digest: 'before' }) },
      ['Apply a'],
    ],
    [
      'is applied again when somebody has changed it',
      { present: [fromFile('a', { generation: 2 })], applied: applied('a') },
      ['Apply a'],
    ],
    [
      'is applied again when somebody has deleted it, or made it anew',
      { present: [fromFile('a', { uid: 'other' })], applied: applied('a') },
      ['Apply a'],
    ],
    [
      'is not applied again because the cache is behind',
      { present: [fromFile('a')], applied: applied('a', { generation: 2 }) },
      [],
    ],
    [
      'whose name somebody else has taken is left to them',
      { present: [aWorkflow({}, { name: 'a' })], applied: applied('a') },
      ['LeaveAlone a'],
    ],
  ])('%s', (_, observed, expected) => {
    expect(actions({ wanted: [wanted('a')], ...observed })).toEqual(expected);
  });
});

describe('a workflow that the file does not name', () => {
  it.each<[string, Partial<ConfigurationObserved>, readonly string[]]>([
    ['goes when it was made from it', { present: [fromFile('a')] }, ['Delete a']],
    ['stays when it was not', { present: [aWorkflow({}, { name: 'a' })] }, []],
    [
      'is suspended first while a run goes on with it',
      { present: [fromFile('a')], busy: new Set(['a']) },
      ['Suspend a'],
    ],
    ['waits for its last run', { present: [fromFile('a', {}, true)], busy: new Set(['a']) }, []],
    ['goes after its last run', { present: [fromFile('a', {}, true)] }, ['Delete a']],
  ])('%s', (_, observed, expected) => {
    expect(actions(observed)).toEqual(expected);
  });
});
