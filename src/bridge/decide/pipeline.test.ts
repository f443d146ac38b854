import { describe, expect, it } from 'vitest';
import type { PipelineEvent } from '../events.ts';
import type { WorkflowView } from './decision.ts';
import { decidePipeline } from './pipeline.ts';
import { runName } from './run-name.ts';

type Spec = WorkflowView['spec'];

const aWorkflow = (name: string, spec: Spec = {}): WorkflowView => ({
  metadata: { name, namespace: 'hummingbird' },
  spec: { triggers: [{ event: 'Pipeline' }], projects: [{ path: 'group/app' }], ...spec },
});

const aMergeRequest = {
  iid: 7,
  title: 'Fix it',

  targetBranch: 'main',
  targetProjectId: 1,
};

const anEvent = (rest: Partial<PipelineEvent> = {}): PipelineEvent => ({
  kind: 'Pipeline',
  pipelineId: 31,
  status: 'failed',
  source: 'merge_request_event',
  sha: 'a'.repeat(40),
  project: { id: 1, path: 'group/app' },
  user: { id: 9, name: 'alice' },
  mergeRequest: aMergeRequest,
  ...rest,
});

const reasons = (event: PipelineEvent, workflows: readonly WorkflowView[]) =>
  decidePipeline(event, workflows).map((decision) =>
    decision.kind === 'Skip' ? decision.reason : decision.kind,
  );

describe('a pipeline event', () => {
  it.each<[string, Partial<PipelineEvent>, Spec, string]>([
    ['failed on a merge request', {}, {}, 'CreateRun'],
    ['BR-09: of a push', { source: 'push', mergeRequest: undefined }, {}, 'NotMergeRequestPipeline'],
    [
      'BR-09: of a parent pipeline',
      { source: 'parent_pipeline', mergeRequest: undefined },
      {},
      'NotMergeRequestPipeline',
    ],
    ['of a push that belongs to a merge request', { source: 'push' }, {}, 'NotMergeRequestPipeline'],
    ['of a merge request that is not named', { mergeRequest: undefined }, {}, 'NotMergeRequestPipeline'],
    ['that ran in a fork', { mergeRequest: { ...aMergeRequest, targetProjectId: 2 } }, {}, 'ForeignProject'],
    ['of another project', { project: { id: 1, path: 'group/App' } }, {}, 'NoWorkflow'],
    ['for a suspended workflow', {}, { suspend: true }, 'Suspended'],
    ['for a workflow without triggers', {}, { triggers: [] }, 'NotTriggered'],
    ['for a workflow with another trigger', {}, { triggers: [{ event: 'MergeRequest' }] }, 'NotTriggered'],
    ['that succeeded', { status: 'success' }, {}, 'SkippedRule'],
    ['that still runs', { status: 'running' }, {}, 'PipelineNotFinished'],
    [
      'refused by the ignore list',
      {},
      { triggers: [{ event: 'Pipeline', ignoreUsers: ['alice'] }] },
      'SkippedRule',
    ],
    [
      'with a broken rule',
      {},
      { triggers: [{ event: 'Pipeline', rules: [{ action: 'Allow', title: ['/[/'] }] }] },
      'InvalidRule',
    ],
    [
      'refused by one trigger and allowed by another',
      {},
      { triggers: [{ event: 'Pipeline', ignoreUsers: ['alice'] }, { event: 'Pipeline' }] },
      'CreateRun',
    ],
  ])('%s', (_name, event, spec, expected) => {
    expect(reasons(anEvent(event), [aWorkflow('analyze', spec)])).toEqual([expected]);
  });

  it('is decided for each workflow by itself', () => {
    const workflows = [
      aWorkflow('a'),
      aWorkflow('b', { suspend: true }),
      aWorkflow('c', { projects: [{ path: 'other' }] }),
      aWorkflow('d'),
    ];
    expect(reasons(anEvent(), workflows)).toEqual(['CreateRun', 'Suspended', 'CreateRun']);
  });

  it('with no workflow at all is one skip', () => {
    expect(decidePipeline(anEvent(), [])).toMatchObject([{ kind: 'Skip', reason: 'NoWorkflow' }]);
  });
});

describe('BR-05: the cause of a run', () => {
  const names = (...events: PipelineEvent[]) =>
    new Set(
      events
        .flatMap((event) => decidePipeline(event, [aWorkflow('analyze')]))
        .map((d) => (d.kind === 'CreateRun' ? runName(d.cause) : d.reason)),
    );

  it('is the same for the same pipeline, also after the title was edited', () => {
    expect(
      names(anEvent(), anEvent({ mergeRequest: { ...aMergeRequest, title: 'Other' } }), anEvent()).size,
    ).toBe(1);
  });

  it('is another one after a push', () => {
    expect(names(anEvent(), anEvent({ pipelineId: 32, sha: 'b'.repeat(40) })).size).toBe(2);
  });
});
