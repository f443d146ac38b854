// The events that docs/routing.md shows, each with the world it meets. What becomes of them is asked of the code.
import type { Facts, World } from '../../../src/bridge/decide/decision.ts';
import type { MergeRequestEvent } from '../../../src/bridge/events/merge-request.ts';
import type { NoteEvent } from '../../../src/bridge/events/note.ts';
import type { GitLabEvent, OtherEvent } from '../../../src/bridge/events/parse.ts';
import type { PipelineEvent } from '../../../src/bridge/events/pipeline.ts';
import { RUN_MESSAGE_MAX } from '../../../src/crds/agent-run.ts';
import {
  aBridge,
  aMergeRequestEvent,
  aNote,
  aPipeline,
  aServing,
  BOT,
  levels,
  OPERATOR,
  trusting,
} from '../../../test/builders/bridge.ts';

export interface RoutingCase {
  readonly when: string;
  readonly event: GitLabEvent | OtherEvent;
  readonly world?: Partial<World>;
}

const stranger = trusting({ access: levels({ 9: 20 }) });
const pushedByStranger = trusting({
  pushAuthor: { kind: 'Ok', value: { id: 10, name: 'bob' } },
  access: levels({ 9: 30, 10: 0 }),
});
const spec = (given: Parameters<typeof aServing>[1]) => ({ workflows: [aServing('analyze', given)] });
const rules = (event: string, rule: object) =>
  spec({ triggers: [{ event, rules: [{ action: 'Allow', ...rule }] }] });

const pipeline = (when: string, event: Partial<PipelineEvent>, world?: Partial<World>): RoutingCase => ({
  when,
  event: aPipeline(event),
  ...(world && { world }),
});

export const PIPELINES: readonly RoutingCase[] = [
  pipeline('failed, no rules', {}),
  pipeline('failed, the rules allow it', {}, rules('Pipeline', { status: ['failed'], branch: ['main'] })),
  pipeline('failed, no rule matches', {}, rules('Pipeline', { branch: ['release-*'] })),
  pipeline(
    'failed, the user or the target branch is ignored',
    {},
    {
      ...spec({ triggers: [{ event: 'Pipeline', ignoreUsers: ['ali*'] }] }),
    },
  ),
  pipeline('failed, a title pattern is no regular expression', {}, rules('Pipeline', { title: ['/(/'] })),
  pipeline('cancelled or skipped, no rules', { status: 'canceled' }),
  pipeline('created, pending or running', { status: 'running' }),
  pipeline('succeeded, no rules', { status: 'success' }),
  pipeline(
    'succeeded, the rules allow it',
    { status: 'success' },
    rules('Pipeline', { status: ['success'] }),
  ),
  pipeline('the merge request has a newer pipeline', { pipelineId: 30 }),
  pipeline('whoever started it is no Developer', {}, { facts: stranger }),
  pipeline('whoever pushed last is no Developer', {}, { facts: pushedByStranger }),
  pipeline(
    'GitLab does not tell who pushed last',
    {},
    {
      facts: trusting({ pushAuthor: { kind: 'Refused', status: 403, message: '' } }),
    },
  ),
  pipeline('the event names no user', { user: undefined }),
  pipeline('of a push, a tag or a parent pipeline', { source: 'push', mergeRequest: undefined }),
  pipeline('ran in a fork', {
    mergeRequest: { iid: 7, title: '', targetBranch: 'main', targetProjectId: 2 },
  }),
  pipeline('the workflow has no Pipeline trigger', {}, spec({ triggers: [] })),
  pipeline('the workflow is suspended', {}, spec({ suspend: true })),
  pipeline('no workflow names the project', {}, { workflows: [] }),
];

const mergeRequest = (
  when: string,
  event: Partial<MergeRequestEvent>,
  world?: Partial<World>,
): RoutingCase => ({ when, event: aMergeRequestEvent(event), ...(world && { world }) });

export const MERGE_REQUESTS: readonly RoutingCase[] = [
  mergeRequest('opened or reopened', {}),
  mergeRequest('updated: a label, the title, a reviewer', { action: 'update' }),
  mergeRequest('updated: a push', { action: 'update', pushed: true }),
  mergeRequest('a draft', { draft: true }),
  mergeRequest('a push to a draft', { action: 'update', pushed: true, draft: true }),
  mergeRequest('updated: marked as ready', { action: 'update' }),
  mergeRequest('no rule matches', {}, rules('MergeRequest', { title: ['/^chore/'] })),
  mergeRequest('whoever did it is no Developer', {}, { facts: stranger }),
  mergeRequest('whoever pushed last is no Developer', { action: 'update' }, { facts: pushedByStranger }),
  mergeRequest('closed, merged, approved', { action: 'close', state: 'closed' }),
  mergeRequest('updated after it was closed', { action: 'update', state: 'merged' }),
  mergeRequest('without a head commit', { sha: undefined }),
  mergeRequest('the workflow has no MergeRequest trigger', {}, spec({ triggers: [] })),
  mergeRequest('the workflow is suspended', {}, spec({ suspend: true })),
  mergeRequest('no workflow names the project', {}, { workflows: [] }),
];

const note = (when: string, event: Partial<NoteEvent>, world?: Partial<World>): RoutingCase => ({
  when,
  event: aNote(event),
  ...(world && { world }),
});

const marker = (kind: 'Signed' | 'Forged', wf = 'analyze'): Facts['thread'] => ({
  kind: 'Ok',
  value: [
    {
      noteId: 500,
      authorId: BOT,
      system: false,
      marker: kind === 'Signed' ? { kind, marker: { id: 'session', wf } } : { kind },
    },
  ],
});
const inThread = { text: 'Why is that?', inDiscussion: true } as const;
const thread = (given: Facts['thread'], rest: Facts = {}) => ({
  facts: trusting({ ...rest, ...(given && { thread: given }) }),
});
const long = 'x'.repeat(RUN_MESSAGE_MAX + 1);
const two = { workflows: [aServing('review-code'), aServing('review-docs')] };

export const COMMANDS: readonly RoutingCase[] = [
  note('`/hummingbird analyze`, or a beginning that fits one workflow', { text: '/hummingbird ana' }),
  note('`/hummingbird analyze the cache test`', { text: '/hummingbird analyze the cache test' }),
  note('`/hummingbird`, `/hummingbird help`', { text: '/hummingbird' }),
  note('`/hummingbird status`', { text: '/hummingbird status' }),
  note('`/hummingbird cancel`, `/hummingbird stop`', { text: '/hummingbird stop' }),
  note('`/hummingbird approve ID`, `/hummingbird deny ID`', { text: '/hummingbird approve 0123456789ab' }),
  note('a beginning that fits several workflows', { text: '/hummingbird review' }, two),
  note('no such workflow', { text: '/hummingbird deploy' }),
  note('the workflow is suspended', { text: '/hummingbird analyze' }, spec({ suspend: true })),
  note('words behind it that are too long', { text: `/hummingbird analyze ${long}` }),
  note('by somebody who is no Developer', {}, { facts: stranger }),
];

export const REPLIES: readonly RoutingCase[] = [
  note('in the thread of an agent', inThread, thread(marker('Signed'))),
  note(
    'in the thread of an agent, by somebody who is no Developer',
    inThread,
    thread(marker('Signed'), { access: levels({ 9: 0 }) }),
  ),
  note(
    'in the thread of a workflow that serves the project no longer',
    inThread,
    thread(marker('Signed', 'gone')),
  ),
  note('in the thread of a suspended workflow', inThread, {
    ...spec({ suspend: true }),
    ...thread(marker('Signed')),
  }),
  note('too long', { ...inThread, text: long }, thread(marker('Signed'))),
  note('in a thread whose marker none of our keys has signed', inThread, thread(marker('Forged'))),
];

export const OTHER_NOTES: readonly RoutingCase[] = [
  note('a comment that stands alone', { text: 'Looks good.' }),
  note('in a thread of people', inThread, thread({ kind: 'Ok', value: [] })),
  note('a command in a quote, in code or in a fence, or not at the beginning', {
    text: '> /hummingbird analyze',
  }),
  note('edited', { action: 'update' }),
  note('by one of our bots', { author: { id: BOT, name: 'bot' } }),
  note("by the operator's own user", { author: { id: OPERATOR, name: 'operator' } }),
  note("GitLab's own words", { system: true }),
  note('on a commit, an issue or a snippet', { on: 'Commit', mergeRequest: undefined }),
  note('no workflow names the project', {}, { workflows: [] }),
];

export const OTHERS: readonly RoutingCase[] = [
  { when: 'an event of another kind, such as `push`', event: { kind: 'Other', what: 'gitlab/push' } },
];

export const worldOf = ({ world }: RoutingCase): World => aBridge(world);
