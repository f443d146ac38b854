import type {
  Decision,
  Facts,
  Question,
  Verdict,
  WorkflowView,
  World,
} from '../../src/bridge/decide/decision.ts';
import type { MergeRequestEvent } from '../../src/bridge/events/merge-request.ts';
import type { NoteEvent } from '../../src/bridge/events/note.ts';
import type { PipelineEvent } from '../../src/bridge/events/pipeline.ts';

/** Events and worlds of the bridge in one line: what a test does not name is ordinary. */

export const SHA = 'a'.repeat(40);
export const ALICE = { id: 9, name: 'alice' } as const;
export const BOT = 77;
export const OPERATOR = 78;

const project = { id: 1, path: 'group/app' } as const;

export const aPipeline = (rest: Partial<PipelineEvent> = {}): PipelineEvent => ({
  kind: 'Pipeline',
  pipelineId: 31,
  status: 'failed',
  source: 'merge_request_event',
  sha: SHA,
  project,
  user: ALICE,
  mergeRequest: { iid: 7, title: 'Fix it', targetBranch: 'main', targetProjectId: 1 },
  ...rest,
});

export const aMergeRequestEvent = (rest: Partial<MergeRequestEvent> = {}): MergeRequestEvent => ({
  kind: 'MergeRequest',
  action: 'open',
  state: 'opened',
  draft: false,
  sha: SHA,
  labels: [],
  authorId: undefined,
  pushed: false,
  project,
  user: ALICE,
  mergeRequest: { iid: 7, title: 'Fix it', targetBranch: 'main', targetProjectId: 1 },
  ...rest,
});

export const aNote = (rest: Partial<NoteEvent> = {}): NoteEvent => ({
  kind: 'Note',
  noteId: 501,
  discussionId: 'd'.repeat(40),
  text: '/hummingbird help',
  action: 'create',
  on: 'MergeRequest',
  system: false,
  inDiscussion: false,
  project,
  author: ALICE,
  mergeRequest: { iid: 7, targetProjectId: 1, sha: SHA },
  ...rest,
});

/** A workflow on `group/app` whose bot is known. */
export const aServing = (name = 'analyze', spec: WorkflowView['spec'] = {}): WorkflowView => ({
  metadata: { name, namespace: 'hummingbird' },
  spec: {
    triggers: [{ event: 'Pipeline' }, { event: 'MergeRequest' }],
    projects: [{ path: 'group/app' }],
    ...spec,
  },
  status: { projects: [{ path: 'group/app', botUserId: BOT }] },
});

/** GitLab's answers when everybody may do everything; Alice has pushed. */
export const trusting = (rest: Facts = {}): Facts => ({
  self: { kind: 'Ok', value: OPERATOR },
  access: levels({ [ALICE.id]: 30 }),
  mergeRequest: { kind: 'Ok', value: { headPipelineId: 31 } },
  pushAuthor: { kind: 'Ok', value: ALICE },
  thread: { kind: 'Ok', value: [] },
  ...rest,
});

export const levels = (byUser: Readonly<Record<number, number>>): NonNullable<Facts['access']> =>
  new Map(Object.entries(byUser).map(([id, value]) => [Number(id), { kind: 'Ok', value }]));

export const aBridge = (rest: Partial<World> = {}): World => ({
  workflows: [aServing()],
  runs: [],
  commandPrefix: '/hummingbird',
  facts: trusting(),
  ...rest,
});

/** A verdict in words: kinds of decisions, reasons of skips and refusals, or what is asked. */
export function words(verdict: Verdict): readonly string[] {
  return verdict.kind === 'Ask' ? verdict.questions.map(asked) : verdict.decisions.map(word);
}

const asked = (question: Question): string =>
  question.kind === 'Access' ? `ask Access ${question.userId}` : `ask ${question.kind}`;

function word(decision: Decision): string {
  if (decision.kind === 'Skip') return decision.reason;
  if (decision.kind !== 'Answer') return decision.kind;
  return decision.skip === undefined ? `Answer ${decision.what}` : `Answer ${decision.skip.reason}`;
}
