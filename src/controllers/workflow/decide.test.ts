import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { decideWorkflow, type WorkflowObserved } from './decide.ts';
import { keptRevision } from './kept.ts';

const now = new Date('2026-03-01T12:00:00Z');
const earlier = '2026-02-01T00:00:00.000Z';

const observed = (changes: Partial<WorkflowObserved> = {}, suspend = false): WorkflowObserved => ({
  // What decideWorkflow reads of a workflow.
  workflow: {
    metadata: { name: 'w', generation: 3 },
    spec: { suspend, triggers: [{ event: 'Pipeline' }, { event: 'MergeRequest' }] },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Ready', message: 'as before', lastTransitionTime: earlier },
      ],
    },
  } as unknown as AgentWorkflow,
  references: [{ field: 'spec.prompt', ok: true }],
  acceptance: { kind: 'Accepted' },
  projects: [{ path: 'group/app', ready: true, botUserId: 7 }],
  activeRuns: 2,
  ...changes,
});

const conditionsOf = (state: WorkflowObserved) =>
  Object.fromEntries((decideWorkflow(state, now).conditions ?? []).map((one) => [one.type, one]));

describe('decideWorkflow', () => {
  it('is ready when everything that it names is there', () => {
    const status = decideWorkflow(observed(), now);
    expect(status).toMatchObject({
      acceptedGeneration: 3,
      activeRuns: 2,
      trigger: 'Pipeline,MergeRequest',
      projectsReady: '1/1',
      projects: [{ path: 'group/app', ready: true, botUserId: 7 }],
    });
    expect(conditionsOf(observed())).toMatchObject({
      Accepted: { status: 'True' },
      ResolvedRefs: { status: 'True' },
      Ready: { status: 'True', observedGeneration: 3 },
    });
  });

  it('keeps the time of the last transition while the status stays the same', () => {
    expect(conditionsOf(observed())['Ready']?.lastTransitionTime).toBe(earlier);
    expect(conditionsOf(observed({}, true))['Ready']?.lastTransitionTime).toBe(now.toISOString());
  });

  it('names every broken reference, and the first one as the reason', () => {
    const references = [
      { field: 'spec.prompt', ok: true },
      { field: 'spec.model.apiKeySecretRef', ok: false, reason: 'WrongTier', message: 'has tier action' },
      { field: 'spec.sandbox.poolRef', ok: false, reason: 'NotFound', message: 'does not exist' },
    ];
    const { ResolvedRefs, Ready } = conditionsOf(observed({ references }));
    expect(ResolvedRefs).toMatchObject({ status: 'False', reason: 'WrongTier' });
    expect(ResolvedRefs?.message).toBe(
      'spec.model.apiKeySecretRef: has tier action; spec.sandbox.poolRef: does not exist',
    );
    expect(Ready).toMatchObject({ status: 'False', reason: 'UnresolvedRefs' });
  });

  it('says which project is not served and why, within what the API server takes', () => {
    const projects = [{ path: 'group/app', ready: false, message: `401 ${'x'.repeat(5000)}` }];
    const status = decideWorkflow(observed({ projects }), now);
    expect(status.projects?.[0]?.message?.length).toBeLessThanOrEqual(512);
    const { Ready } = conditionsOf(observed({ projects }));
    expect(Ready).toMatchObject({ status: 'False', reason: 'ProjectsNotReady' });
    expect(Ready?.message).toMatch(/^group\/app: 401/);
    expect(Ready?.message.length).toBeLessThanOrEqual(1024);
  });

  it('says of a spec that was refused why, and which generation new runs use', () => {
    const refused = {
      kind: 'Refused',
      reason: 'Invalid',
      message: 'spec.limits.timeout is 0s',
      kept: { generation: 2, spec: aWorkflow().spec, revision: keptRevision(aWorkflow()) },
    } as const;
    const state = observed({ acceptance: refused });
    expect(decideWorkflow(state, now)).toMatchObject({ observedGeneration: 3, acceptedGeneration: 2 });
    const { Accepted, Ready } = conditionsOf(state);
    expect(Accepted).toMatchObject({ status: 'False', reason: 'Invalid' });
    expect(Accepted?.message).toBe(
      'spec.limits.timeout is 0s. New runs use generation 2 until generation 3 is mended',
    );
    expect(Ready).toMatchObject({ status: 'False', reason: 'NotAccepted' });
  });

  it('names no accepted generation when there was none', () => {
    const refused = { kind: 'Refused', reason: 'Invalid', message: 'wrong', kept: undefined } as const;
    const state = observed({ acceptance: refused });
    expect(decideWorkflow(state, now)).not.toHaveProperty('acceptedGeneration');
    expect(conditionsOf(state)['Accepted']?.message).toBe('wrong. No earlier generation was accepted');
  });

  it('is not ready while it is suspended, whatever else is true', () => {
    expect(conditionsOf(observed({}, true))['Ready']).toMatchObject({ status: 'False', reason: 'Suspended' });
  });
});
