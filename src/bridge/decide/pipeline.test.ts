import { describe, expect, it } from 'vitest';
import {
  ALICE,
  aBridge,
  aPipeline,
  aServing,
  levels,
  SHA,
  trusting,
  words,
} from '../../../test/builders/bridge.ts';
import type { PipelineEvent } from '../events/pipeline.ts';
import type { Facts, WorkflowView } from './decision.ts';
import { decidePipeline } from './pipeline.ts';
import { runName } from './run-name.ts';

const BOB = { id: 10, name: 'bob' };
const allowAll = [{ action: 'Allow' as const }];
const refused = { kind: 'Refused', status: 403, message: 'no' } as const;

describe('a pipeline event', () => {
  const aMergeRequest = aPipeline().mergeRequest;
  it.each<[string, Partial<PipelineEvent>, WorkflowView['spec'], string]>([
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
    [
      'that ran in a fork',
      { mergeRequest: aMergeRequest && { ...aMergeRequest, targetProjectId: 2 } },
      {},
      'ForeignProject',
    ],
    ['of another project', { project: { id: 1, path: 'group/App' } }, {}, 'NoWorkflow'],
    ['for a suspended workflow', {}, { suspend: true }, 'Suspended'],
    ['for a workflow without triggers', {}, { triggers: [] }, 'NotTriggered'],
    ['for a workflow with another trigger', {}, { triggers: [{ event: 'MergeRequest' }] }, 'NotTriggered'],
    ['that was cancelled', { status: 'canceled' }, {}, 'SkippedRule'],
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
    const world = aBridge({ workflows: [aServing('analyze', spec)] });
    expect(words(decidePipeline(aPipeline(event), world))).toEqual([expected]);
  });

  it('is decided for each workflow by itself', () => {
    const workflows = [
      aServing('a'),
      aServing('b', { suspend: true }),
      aServing('c', { projects: [{ path: 'other' }] }),
      aServing('d'),
    ];
    expect(words(decidePipeline(aPipeline(), aBridge({ workflows })))).toEqual([
      'CreateRun',
      'Suspended',
      'CreateRun',
    ]);
  });

  it('with no workflow at all is one skip', () => {
    expect(words(decidePipeline(aPipeline(), aBridge({ workflows: [] })))).toEqual(['NoWorkflow']);
  });
});

describe('who is behind a pipeline', () => {
  const decide = (facts: Facts, event: Partial<PipelineEvent> = {}, spec: WorkflowView['spec'] = {}) =>
    words(
      decidePipeline(aPipeline(event), aBridge({ facts, workflows: [aServing('analyze', spec)] })),
    ).join();

  it.each<[string, Facts, string]>([
    ['a Developer', trusting(), 'CreateRun'],
    ['a Maintainer', trusting({ access: levels({ 9: 40 }) }), 'CreateRun'],
    ['a Reporter', trusting({ access: levels({ 9: 29 }) }), 'AccessDenied'],
    ['nobody known', trusting({ access: levels({ 9: 0 }) }), 'AccessDenied'],
    ['somebody of whom GitLab does not tell', trusting({ access: new Map([[9, refused]]) }), 'AccessDenied'],
    [
      'a Developer, on what a stranger has pushed',
      trusting({ pushAuthor: { kind: 'Ok', value: BOB }, access: levels({ 9: 30, 10: 0 }) }),
      'AccessDenied',
    ],
    [
      'a stranger, on what a Developer has pushed',
      trusting({ pushAuthor: { kind: 'Ok', value: BOB }, access: levels({ 9: 0, 10: 30 }) }),
      'AccessDenied',
    ],
    [
      'two Developers',
      trusting({ pushAuthor: { kind: 'Ok', value: BOB }, access: levels({ 9: 30, 10: 30 }) }),
      'CreateRun',
    ],
    ['a Developer, and GitLab does not tell who pushed', trusting({ pushAuthor: refused }), 'AccessDenied'],
    [
      'a Developer, and GitLab has forgotten who pushed',
      trusting({ pushAuthor: { kind: 'Ok', value: undefined } }),
      'CreateRun',
    ],
  ])('%s', (_who, facts, expected) => {
    expect(decide(facts)).toBe(expected);
  });

  it('nobody at all is not trusted', () => {
    expect(decide(trusting(), { user: undefined })).toBe('AccessDenied');
  });

  it('is asked in two rounds at most, and each user once', () => {
    const round = (facts: Facts) => words(decidePipeline(aPipeline(), aBridge({ facts })));
    expect(round({})).toEqual(['ask MergeRequest', 'ask PushAuthor', `ask Access ${ALICE.id}`]);
    const { mergeRequest, pushAuthor } = trusting();
    expect(
      mergeRequest && pushAuthor && round({ mergeRequest, pushAuthor, access: levels({ 9: 30 }) }),
    ).toEqual(['CreateRun']);
    expect(round(trusting({ pushAuthor: { kind: 'Ok', value: BOB } }))).toEqual(['ask Access 10']);
  });

  it.each<[string, Partial<PipelineEvent>, WorkflowView['spec']]>([
    ['that still runs', { status: 'running' }, {}],
    ['for a suspended workflow', {}, { suspend: true }],
    ['to an ignored branch', {}, { triggers: [{ event: 'Pipeline', ignoreBranches: ['main'] }] }],
    ['of a push', { source: 'push' }, {}],
  ])('is not asked for a pipeline %s', (_which, event, spec) => {
    const world = aBridge({ facts: {}, workflows: [aServing('analyze', spec)] });
    expect(decidePipeline(aPipeline(event), world).kind).toBe('Decided');
  });

  it('is whoever pushed last, where rules look at users', () => {
    const spec = { triggers: [{ event: 'Pipeline', ignoreUsers: ['bob'] }] };
    const both = { access: levels({ 9: 30, 10: 30 }) };
    expect(decide(trusting({ pushAuthor: { kind: 'Ok', value: BOB }, ...both }), {}, spec)).toBe(
      'SkippedRule',
    );
    expect(decide(trusting(both), { user: BOB }, spec)).toBe('CreateRun');
    expect(
      decide(trusting({ pushAuthor: { kind: 'Ok', value: undefined }, ...both }), { user: BOB }, spec),
    ).toBe('SkippedRule');
  });
});

describe('a pipeline that is not the newest one', () => {
  const at = (headPipelineId: number | undefined) =>
    trusting({ mergeRequest: { kind: 'Ok', value: { headPipelineId } } });

  it('is stale, failed or not, for every workflow', () => {
    const world = aBridge({ facts: at(32), workflows: [aServing('a'), aServing('b')] });
    expect(words(decidePipeline(aPipeline(), world))).toEqual(['StalePipeline', 'StalePipeline']);
    expect(words(decidePipeline(aPipeline({ status: 'success' }), world))).toEqual([
      'StalePipeline',
      'StalePipeline',
    ]);
  });

  it('is not told apart where GitLab names no pipeline, or does not tell', () => {
    expect(words(decidePipeline(aPipeline(), aBridge({ facts: at(undefined) })))).toEqual(['CreateRun']);
    const facts = trusting({ mergeRequest: refused });
    expect(words(decidePipeline(aPipeline(), aBridge({ facts })))).toEqual(['CreateRun']);
  });
});

describe('a pipeline that succeeded', () => {
  it('resolves the threads of every workflow of the project, whatever its triggers say', () => {
    const workflows = [
      aServing('a'),
      aServing('b', { triggers: [] }),
      aServing('c', { suspend: true }),
      aServing('d', { triggers: [{ event: 'Pipeline', rules: allowAll }] }),
      aServing('e', { projects: [{ path: 'other' }] }),
    ];
    const verdict = decidePipeline(aPipeline({ status: 'success' }), aBridge({ workflows }));
    expect(words(verdict)).toEqual([
      ...Array(4).fill('ResolveThreads'),
      'SkippedRule',
      'NotTriggered',
      'Suspended',
      'CreateRun',
    ]);
    expect(verdict).toMatchObject({
      decisions: [
        { workflow: { metadata: { name: 'a' } }, project: 'group/app', iid: 7 },
        {},
        {},
        {},
        {},
        {},
        {},
        {},
      ],
    });
  });

  it('asks nobody about users for that', () => {
    const verdict = decidePipeline(aPipeline({ status: 'success' }), aBridge({ facts: {} }));
    expect(words(verdict)).toEqual(['ask MergeRequest']);
  });
});

describe('BR-05: the cause of a run', () => {
  const names = (...events: PipelineEvent[]) =>
    new Set(
      events.map((event) => {
        const facts = trusting({ mergeRequest: { kind: 'Ok', value: { headPipelineId: event.pipelineId } } });
        const verdict = decidePipeline(event, aBridge({ facts }));
        const [decision] = verdict.kind === 'Decided' ? verdict.decisions : [];
        return decision?.kind === 'CreateRun' ? runName(decision.cause) : decision?.kind;
      }),
    );
  const renamed = { iid: 7, title: 'Other', targetBranch: 'main', targetProjectId: 1 };

  it('is the same for the same pipeline, also after the title was edited', () => {
    expect(names(aPipeline(), aPipeline({ mergeRequest: renamed }), aPipeline()).size).toBe(1);
  });

  it('is another one after a push', () => {
    expect(names(aPipeline(), aPipeline({ pipelineId: 32, sha: SHA.replaceAll('a', 'b') })).size).toBe(2);
  });
});
