import { describe, expect, it } from 'vitest';
import { aReport } from '../../../test/builders/gate-report.ts';
import type { ApplicationReport, GateReport } from '../gate/report.ts';
import { choosePath, type PathSettings } from './choose.ts';

const ALL: PathSettings = { explainGreen: true, migrateDroppedVersions: true, structuralMigration: true };
const object = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const consumer = { path: 'apps/peer.yaml', line: 1, object: 'Peer/a' };
const dropped = {
  crd: 'peers.example.org',
  group: 'example.org',
  kind: 'Peer',
  versions: ['v1beta1'],
  target: 'v1',
  consumers: [consumer],
};
const refusal = ['port: additional property not allowed'];

describe('choosePath', () => {
  it.each<[string, Partial<ApplicationReport>, string, Partial<PathSettings>?, Partial<GateReport>?]>([
    ['explains a green bump that changes what is rendered', { added: [object] }, 'Explain'],
    ['says nothing of a green bump that changes nothing', {}, 'Nothing'],
    [
      'says nothing of a green bump when nobody wants to hear it',
      { added: [object] },
      'Nothing',
      { explainGreen: false },
    ],
    ['migrates manifests when only they are in the way', { droppedVersions: [dropped] }, 'Restructure'],
    [
      'migrates manifests also when objects of the chart move with them',
      { droppedVersions: [dropped], apiVersionMoves: [{ ...object, from: 'apps/v1beta1' }] },
      'Restructure',
    ],
    [
      'asks for a verdict when manifests may not be migrated',
      { droppedVersions: [dropped] },
      'Triage',
      { migrateDroppedVersions: false },
    ],
    [
      'asks for a verdict when more than manifests is in the way',
      { droppedVersions: [dropped], removed: [object] },
      'Triage',
    ],
    ['migrates values when only the schema is in the way', { schemaRefusals: refusal }, 'Values'],
    [
      'asks for a verdict when values may not be migrated',
      { schemaRefusals: refusal },
      'Triage',
      { structuralMigration: false },
    ],
    [
      'migrates values whose refused keys are not declared either',
      { schemaRefusals: refusal, valuesNotDeclared: ['port'] },
      'Values',
    ],
    ['asks for a verdict on objects that are gone', { removed: [object] }, 'Triage'],
    [
      'asks for a verdict on a default that flipped',
      { defaults: [{ key: 'a', from: 'true', to: 'false' }] },
      'Triage',
    ],
    [
      'asks for a verdict on a move, so that a person gets words',
      { targeting: [{ what: 'Namespace', from: 'a', to: 'b' }] },
      'Triage',
    ],
    ['escalates a chart that does not render', { unrenderable: { head: 'template: x\nmore' } }, 'Escalate'],
    ['escalates a chart that did not render before', { unrenderable: { base: 'not found' } }, 'Escalate'],
    [
      'escalates a definition that is gone',
      { droppedVersions: [{ ...dropped, target: undefined }] },
      'Escalate',
      { migrateDroppedVersions: false },
    ],
    [
      "escalates when the chart's own objects move",
      { apiVersionMoves: [{ ...object, from: 'apps/v1beta1' }] },
      'Escalate',
    ],
    ['never calls green what was not looked at', {}, 'Triage', {}, { notCovered: ['x'] }],
    ['escalates when nothing was looked at', {}, 'Escalate', {}, { notCovered: ['x'], applications: [] }],
  ])('%s', (_, application, kind, settings = {}, report = {}) => {
    expect(choosePath(aReport(application, report), { ...ALL, ...settings }).kind).toBe(kind);
  });

  it('says one sentence of a chart that does not render, in helm’s words', () => {
    expect(choosePath(aReport({ unrenderable: { head: 'template: bad.\nsecond line' } }), ALL)).toEqual({
      kind: 'Escalate',
      why: 'Application argocd/web does not render at the new version: template: bad',
    });
  });
});
