import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import { effectiveRun } from './effective.ts';

const day = 24 * 3_600_000;
const minute = 60_000;
const project = { path: 'group/app', actionTokenSecretRef: { name: 'action', key: 'token' } };

describe('effectiveRun', () => {
  it('lays the run over the project over the workflow', () => {
    const workflow = aWorkflow({
      limits: { maxIterations: 5, contextTokens: 1000, timeout: '10m', maxRunsPerMergeRequest: 5 },
      projects: [{ ...project, limits: { maxIterations: 6 } }],
    });
    const run = aRun({}, { spec: { limits: { timeout: '30m', budgetUSD: '0.10' } } });
    expect(effectiveRun(run, workflow)).toMatchObject({
      maxIterations: 6,
      contextTokens: 1000,
      timeoutMs: 30 * minute,
      budgetUsd: 0.1,
    });
  });

  it('has limits also when the workflow is gone', () => {
    const effective = effectiveRun(aRun(), undefined);
    expect(effective).toMatchObject({ timeoutMs: 25 * minute, budgetUsd: undefined, pool: undefined });
    expect(effective.maxIterations).toBeGreaterThan(0);
  });

  it.each([
    ['Note', 'Note', true],
    ['None', 'Note', false],
    ['Note', 'None', false],
  ] as const)('publishes when the run says %s and the workflow %s: %s', (ofRun, ofWorkflow, expected) => {
    const workflow = aWorkflow({ publish: { kind: ofWorkflow, internal: true, progress: false } });
    const run = aRun({}, { spec: { publish: { kind: ofRun } } });
    expect(effectiveRun(run, workflow).publishesNote).toBe(expected);
  });

  it('keeps notes internal unless somebody decided otherwise', () => {
    expect(effectiveRun(aRun(), undefined).internalNote).toBe(true);
    expect(effectiveRun(aRun(), aWorkflow()).internalNote).toBe(false);
    const own = aWorkflow({ projects: [{ ...project, internal: true }] });
    expect(effectiveRun(aRun(), own).internalNote).toBe(true);
  });

  it("takes the pool from the run, then the workflow, by default in the run's namespace", () => {
    const workflow = aWorkflow({ sandbox: { poolRef: { name: 'analysis', namespace: 'sandboxes' } } });
    expect(effectiveRun(aRun(), workflow).pool).toEqual({ name: 'analysis', namespace: 'sandboxes' });
    const own = aRun({}, { spec: { sandbox: { poolRef: { name: 'mine' } } } });
    expect(effectiveRun(own, workflow).pool).toEqual({ name: 'mine', namespace: 'agents' });
    const none = aRun({}, { spec: { sandbox: { none: true } } });
    expect(effectiveRun(none, workflow).pool).toBeUndefined();
  });

  it('keeps a run that an event made longer than a queue keeps its message, and a manual one as asked', () => {
    const ttlSecondsAfterFinished = { success: 60 };
    const manual = aRun({}, { spec: { ttlSecondsAfterFinished } });
    expect(effectiveRun(manual, aWorkflow()).ttlMs).toEqual({ success: minute, failure: 2 * 60 * minute });
    const pipeline = aRun({}, { spec: { ttlSecondsAfterFinished, trigger: { kind: 'Pipeline' } } });
    expect(effectiveRun(pipeline, aWorkflow()).ttlMs).toEqual({ success: 15 * day, failure: 15 * day });
  });
});
