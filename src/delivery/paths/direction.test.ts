import { describe, expect, it } from 'vitest';
import { aReport } from '../../../test/builders/gate-report.ts';
import { aTree } from '../../../test/builders/tree.ts';
import type { AppliedEdit } from '../edits/apply.ts';
import type { ApplicationReport } from '../gate/report.ts';
import { isIdle, takesBack, wrongDirection } from './direction.ts';

const service = { apiVersion: 'v1', kind: 'Service', namespace: 'apps', name: 'native' };
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'apps', name: 'web' };
const changed = (path: string, from: string, to: string) => ({
  ...deployment,
  fields: [{ path, from, to }],
  more: 0,
});
const edit = (to: string): AppliedEdit => ({
  path: 'apps/web.yaml',
  key: 'daemon',
  from: 'true',
  to,
  rationale: 'r',
  line: 1,
  before: 'true',
  after: to,
});
const BEFORE = aReport({ removed: [service], changed: [changed('spec.paused', 'false', 'true')] });
const chart = { repository: 'https://charts.example.org', chart: 'web' };

describe('wrongDirection', () => {
  it.each<[string, Partial<ApplicationReport>]>([
    ['less is in the way', { changed: BEFORE.applications[0]?.changed ?? [] }],
    ['a change of the version is gone as well', {}],
    [
      'an object is back, as the new version renders it',
      { changed: [{ ...service, fields: [{ path: 'spec.type', from: '"A"', to: '"B"' }], more: 0 }] },
    ],
  ])('has nothing against edits with which %s', (_, after) => {
    expect(wrongDirection(BEFORE, aReport(after), [edit('false')])).toBeUndefined();
  });

  it.each<[string, Partial<ApplicationReport>, RegExp]>([
    ['the gate finds as much', { removed: [service] }, /as much as before/],
    [
      'something else is in the way',
      { valuesNotDeclared: ['a'] },
      /finds more than before \(valuesDropped\)/,
    ],
    ['something new is rendered', { added: [deployment] }, /Deployment\/web is rendered, which is new/],
    [
      'a field changes that the version leaves alone',
      { changed: [changed('spec.replicas', '1', '2')] },
      /changes at spec.replicas, which the version alone/,
    ],
    [
      'a field changes to something else than the version makes of it',
      { changed: [changed('spec.paused', 'false', 'null')] },
      /spec.paused/,
    ],
    [
      'the old version is back',
      { head: { ...chart, version: '1.0.0' } },
      /take back the version of Application argocd\/web/,
    ],
  ])('lever 5: refuses edits with which %s', (_, after, reason) => {
    expect(wrongDirection(BEFORE, aReport(after), [edit('false')])).toMatch(reason);
  });

  it('lever 5: refuses edits that leave nothing of the bump', () => {
    expect(wrongDirection(BEFORE, aReport({}, { applications: [] }), [edit('false')])).toMatch(/take back/);
  });

  it('lets the edited value be rendered', () => {
    const mirrored = (to: string) => aReport({ changed: [changed('data.daemon', '"true"', to)] });
    expect(wrongDirection(BEFORE, mirrored('"false"'), [edit('false')])).toBeUndefined();
    expect(wrongDirection(BEFORE, mirrored('"auto"'), [edit('false')])).toMatch(/data.daemon/);
  });

  it('lets a second version move with the first', () => {
    const after = aReport({ changed: [changed('spec.image', '"agent:v1.4.0"', '"agent:v1.5.1"')] });
    expect(wrongDirection(BEFORE, after, [edit('v1.5.1')])).toBeUndefined();
    expect(wrongDirection(BEFORE, after, [edit('false')])).toMatch(/spec.image/);
  });
});

describe('isIdle', () => {
  it('lever 5: tells an edit without which the gate finds no more', () => {
    expect(isIdle(aReport(), aReport())).toBe(true);
    expect(isIdle(BEFORE, aReport())).toBe(false);
    // Nothing is in the way of an object more, and the team did not have it.
    expect(isIdle(aReport({ added: [service] }), aReport())).toBe(false);
  });
});

describe('takesBack', () => {
  it('lever 5: tells an edit that sets back what the merge request changes', () => {
    expect(takesBack(aTree({ 'apps/web.yaml': 'daemon: false\n' }), [edit('false')])).toMatch(/takes back/);
    expect(takesBack(aTree({ 'apps/web.yaml': 'daemon: true\n' }), [edit('false')])).toBeUndefined();
    expect(takesBack(aTree({}), [edit('false')])).toBeUndefined();
  });
});
