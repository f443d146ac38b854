import { describe, expect, it } from 'vitest';
import {
  ALICE,
  aBridge,
  aNote,
  aServing,
  BOT,
  levels,
  OPERATOR,
  SHA,
  trusting,
  words,
} from '../../../test/builders/bridge.ts';
import { aRun } from '../../../test/builders/run.ts';
import { RUN_MESSAGE_MAX } from '../../crds/agent-run.ts';
import type { ParsedMarker, ThreadNote } from '../../notes/port.ts';
import type { NoteEvent } from '../events/note.ts';
import type { Answer, CreateRun, Facts, World } from './decision.ts';
import { decideNote } from './note.ts';
import { runName } from './run-name.ts';

const decide = (event: Partial<NoteEvent>, world: Partial<World> = {}) =>
  words(decideNote(aNote(event), aBridge(world)));
const only = (event: Partial<NoteEvent>, world: Partial<World> = {}) => {
  const verdict = decideNote(aNote(event), aBridge(world));
  if (verdict.kind === 'Ask' || verdict.decisions.length !== 1) throw new Error(JSON.stringify(verdict));
  return verdict.decisions[0];
};
const answerOf = (event: Partial<NoteEvent>, world: Partial<World> = {}) => only(event, world) as Answer;
const runOf = (event: Partial<NoteEvent>, world: Partial<World> = {}) => only(event, world) as CreateRun;

describe('a note', () => {
  it.each(['Commit', 'Issue', 'Snippet'])('BR-10: on a %s is dropped, whatever it says', (on) => {
    expect(decide({ on, mergeRequest: undefined })).toEqual(['NotMergeRequestNote']);
  });

  it('BR-10: on a merge request is answered', () => {
    expect(decide({})).toEqual(['Answer Help']);
  });

  it.each<[string, Partial<NoteEvent>, string]>([
    ['that was edited', { action: 'update' }, 'NoteNotNew'],
    ['of an older GitLab, which names no action', { action: '' }, 'Answer Help'],
    ["of GitLab's own", { system: true }, 'SystemNote'],
    ['BR-11: by one of our bots', { author: { id: BOT, name: 'bot' } }, 'OwnNote'],
    [
      'BR-11: by one of our bots, edited',
      { author: { id: BOT, name: 'bot' }, action: 'update' },
      'NoteNotNew',
    ],
    ["by the operator's own user", { author: { id: OPERATOR, name: 'operator' } }, 'OwnNote'],
    ['in a fork', { mergeRequest: { iid: 7, targetProjectId: 2, sha: SHA } }, 'ForeignProject'],
    ['in another project', { project: { id: 1, path: 'group/else' } }, 'NoWorkflow'],
    ['without a commit', { mergeRequest: { iid: 7, targetProjectId: 1, sha: undefined } }, 'Answer Help'],
  ])('%s', (_name, event, expected) => {
    expect(decide(event)).toEqual([expected]);
  });

  it('BR-11: by the bot of a workflow on another project is our own too', () => {
    const elsewhere = { ...aServing('review', { projects: [{ path: 'group/else' }] }), status: undefined };
    const status = { projects: [{ path: 'group/else', botUserId: 99 }] };
    const workflows = [aServing(), { ...elsewhere, status }];
    expect(decide({ author: { id: 99, name: 'bot' } }, { workflows })).toEqual(['OwnNote']);
  });

  it('BR-11: of a person that holds the text of a marker is a note like any other', () => {
    const text = '/hummingbird analyze\n\n<!-- hummingbird-session: {"id":"x","wf":"analyze"} -->';
    expect(decide({ text })).toEqual(['CreateRun']);
  });

  it('that is addressed to nobody asks nobody', () => {
    expect(decide({ text: 'Looks good.' }, { facts: {} })).toEqual(['Commentary']);
  });
});

describe('BR-12: a command', () => {
  it.each<[string, string, string]>([
    ['in a quote', '> /hummingbird analyze\nwhy did this run?', 'Commentary'],
    ['in code', '`/hummingbird analyze`', 'Commentary'],
    ['in a fence', '```\n/hummingbird analyze\n```', 'Commentary'],
    ['itself', '/hummingbird analyze', 'CreateRun'],
  ])('%s', (_name, text, expected) => {
    expect(decide({ text })).toEqual([expected]);
  });
});

describe('a command', () => {
  const workflows = [
    aServing('review-code', { commands: { aliases: ['review', 'cr'] }, description: 'Reviews the\nchange' }),
    aServing('review-docs'),
    aServing('analyze', { suspend: true }),
    aServing('elsewhere', { projects: [{ path: 'group/else' }] }),
  ];
  it.each<[string, string]>([
    ['/hummingbird review-code', 'CreateRun'],
    ['/hummingbird REVIEW-docs', 'CreateRun'],
    ['/hummingbird review', 'CreateRun'],
    ['/hummingbird cr', 'CreateRun'],
    ['/hummingbird review-d', 'CreateRun'],
    ['/hummingbird rev', 'Answer AmbiguousCommand'],
    ['/hummingbird elsewhere', 'Answer UnknownCommand'],
    ['/hummingbird deploy', 'Answer UnknownCommand'],
    ['/hummingbird analyze', 'Answer Suspended'],
    ['/hummingbird', 'Answer Help'],
    ['/hummingbird help me', 'Answer Help'],
    ['/hummingbird status', 'Answer Status'],
    ['/hummingbird cancel', 'Answer Cancel'],
    ['/hummingbird stop review-docs', 'Answer Cancel'],
    ['/hummingbird stop nothing', 'Answer UnknownCommand'],
    [`/hummingbird cr ${'x'.repeat(RUN_MESSAGE_MAX)}`, 'CreateRun'],
    [`/hummingbird cr ${'x'.repeat(RUN_MESSAGE_MAX + 1)}`, 'Answer MessageTooLong'],
    // As the API server counts: characters, not UTF-16 units.
    [`/hummingbird cr ${'🐦'.repeat(RUN_MESSAGE_MAX)}`, 'CreateRun'],
  ])('%.40s', (text, expected) => {
    expect(decide({ text }, { workflows })).toEqual([expected]);
  });

  it('hands the words behind it to the run, in its place in the order of things', () => {
    expect(runOf({ text: '/hummingbird analyze Look at\nthe cache ' })).toMatchObject({
      request: 'Look at\nthe cache',
      noteId: 501,
      user: ALICE,
      cause: { trigger: 'Command', eventId: '501', sha: SHA },
    });
    expect(runOf({ text: '/hummingbird analyze' })).not.toHaveProperty('request');
    expect(runOf({ text: '/hummingbird analyze' })).not.toHaveProperty('session');
  });

  it('BR-05: runs again at a commit that was looked at, once for each note', () => {
    const named = (noteId: number) => runName(runOf({ text: '/hummingbird analyze', noteId }).cause);
    expect(named(1)).not.toBe(named(2));
    expect(named(1)).toBe(named(1));
  });

  it('of somebody who is no Developer is refused in its discussion, before anything else is said', () => {
    const facts = trusting({ access: levels({ 9: 20 }) });
    for (const text of ['/hummingbird', '/hummingbird analyze', '/hummingbird stop', '/hummingbird none']) {
      const answer = answerOf({ text }, { facts, runs: [aRun()] });
      expect(words({ kind: 'Decided', decisions: [answer] })).toEqual(['Answer AccessDenied']);
      expect(answer.to).toEqual({ project: 'group/app', iid: 7, discussionId: 'd'.repeat(40), noteId: 501 });
      expect(answer.cancel).toBeUndefined();
      expect(answer.text).not.toContain('analyze');
    }
  });

  it('asks who wrote it, and nothing more', () => {
    expect(decide({}, { facts: {} })).toEqual(['ask Self']);
    const { self } = trusting();
    expect(self && decide({}, { facts: { self } })).toEqual(['ask Access 9']);
  });

  it('in the thread of an agent is a command, no reply', () => {
    expect(decide({ text: '/hummingbird status', inDiscussion: true })).toEqual(['Answer Status']);
  });

  it('has a prefix of your own', () => {
    expect(decide({ text: '/bird analyze' }, { commandPrefix: '/bird' })).toEqual(['CreateRun']);
    expect(decide({ text: '/hummingbird analyze' }, { commandPrefix: '/bird' })).toEqual(['Commentary']);
  });

  it('that cancels stops what is under way, of all workflows or of one', () => {
    const at = (name: string, workflow: string, phase: 'Running' | 'Succeeded' | undefined) =>
      aRun(phase === undefined ? {} : { phase }, {
        metadata: { name },
        spec: { workflowRef: { name: workflow } },
      });
    const runs = [
      at('a', 'analyze', 'Running'),
      at('b', 'analyze', 'Succeeded'),
      at('c', 'review-docs', undefined),
    ];
    const cancelled = (text: string) =>
      answerOf({ text }, { runs, workflows }).cancel?.map(({ metadata }) => metadata.name);
    expect(cancelled('/hummingbird cancel')).toEqual(['a', 'c']);
    expect(cancelled('/hummingbird stop review-docs please')).toEqual(['c']);
    expect(cancelled('/hummingbird stop review-code')).toEqual([]);
  });
});

describe('a reply', () => {
  const reply = { text: 'Which cache?', inDiscussion: true } as const;
  const signed = (id: string, wf = 'analyze'): ParsedMarker => ({ kind: 'Signed', marker: { id, wf } });
  const by = (authorId: number, marker?: ParsedMarker, system = false): ThreadNote => ({
    noteId: 500,
    authorId,
    system,
    marker,
  });
  const thread = (...notes: ThreadNote[]): Partial<World> => ({ facts: inThread({}, ...notes) });
  const inThread = (rest: Facts, ...notes: ThreadNote[]): Facts =>
    trusting({ thread: { kind: 'Ok', value: notes }, ...rest });

  it.each<[string, readonly ThreadNote[], string]>([
    ['in the thread of an agent', [by(BOT, signed('s')), by(9)], 'CreateRun'],
    ["under a command's answer", [by(9), by(OPERATOR)], 'Commentary'],
    ['in a thread of people', [by(9)], 'Commentary'],
    ['in a thread where somebody copied a marker', [by(9, signed('s'))], 'Commentary'],
    ['in a thread where only GitLab quotes one', [by(BOT, signed('s'), true)], 'Commentary'],
    ['to a bot whose marker is forged', [by(BOT, { kind: 'Forged' })], 'UnknownMarker'],
    ['to a bot whose marker is not signed', [by(BOT, { kind: 'Unsigned' })], 'UnknownMarker'],
    [
      'to a bot with a marker from before they were signed, where those are accepted',
      [by(BOT, { kind: 'Accepted', marker: { id: 's', wf: 'analyze' } })],
      'CreateRun',
    ],
    [
      'in a thread where somebody copied such a marker',
      [by(9, { kind: 'Accepted', marker: { id: 's', wf: 'analyze' } })],
      'Commentary',
    ],
    ['to a bot that has no marker', [by(BOT)], 'Commentary'],
    ['of a workflow that is gone', [by(BOT, signed('s', 'gone'))], 'Answer WorkflowGone'],
  ])('%s', (_name, notes, expected) => {
    expect(decide(reply, thread(...notes))).toEqual([expected]);
  });

  it('goes on with the session of the first marker that is ours and valid', () => {
    const notes = [
      by(9, signed('copied')),
      by(BOT, { kind: 'Forged' }),
      by(BOT, signed('first')),
      by(BOT, signed('second')),
    ];
    expect(runOf(reply, thread(...notes))).toMatchObject({
      session: { id: 'first', discussionId: 'd'.repeat(40) },
      request: 'Which cache?',
      noteId: 501,
      cause: { trigger: 'Reply', eventId: '501', workflow: 'analyze' },
    });
  });

  it('to a marker that names no workflow is for the only one that its bot serves', () => {
    const oldest = thread(by(BOT, { kind: 'Accepted', marker: { id: 's', wf: '' } }));
    expect(runOf(reply, oldest)).toMatchObject({ session: { id: 's' }, cause: { workflow: 'analyze' } });
    const two = [aServing(), aServing('review')];
    expect(decide(reply, { workflows: two, ...oldest })).toEqual(['UnknownMarker']);
  });

  it('is not looked for where a comment stands alone', () => {
    expect(decide({ ...reply, inDiscussion: false }, { facts: {} })).toEqual(['Commentary']);
  });

  it('asks for the thread first, and who wrote it only when it is for an agent', () => {
    const { self, thread: empty } = trusting();
    const ours = inThread({}, by(BOT, signed('s'))).thread;
    expect(self && decide(reply, { facts: { self } })).toEqual(['ask Thread']);
    expect(self && empty && decide(reply, { facts: { self, thread: empty } })).toEqual(['Commentary']);
    expect(self && ours && decide(reply, { facts: { self, thread: ours } })).toEqual(['ask Access 9']);
  });

  it('in a discussion that GitLab does not show is commentary', () => {
    const facts = trusting({ thread: { kind: 'Refused', status: 404, message: 'gone' } });
    expect(decide(reply, { facts })).toEqual(['Commentary']);
  });

  it('of somebody who is no Developer is refused', () => {
    const facts = inThread({ access: levels({ 9: 20 }) }, by(BOT, signed('s')));
    expect(decide(reply, { facts })).toEqual(['Answer AccessDenied']);
  });

  it('to a suspended workflow is answered', () => {
    const workflows = [aServing('analyze', { suspend: true })];
    expect(decide(reply, { workflows, ...thread(by(BOT, signed('s'))) })).toEqual(['Answer Suspended']);
  });

  it('BR-18 (b): that is too long is answered, and starts nothing', () => {
    const answer = answerOf({ ...reply, text: 'x'.repeat(1_200_000) }, thread(by(BOT, signed('s'))));
    expect(answer.skip?.reason).toBe('MessageTooLong');
    expect(answer.text).toContain('1200000 characters');
    expect(answer.text.length).toBeLessThan(500);
  });

  it('is not stopped by what its bot does on another project', () => {
    const other = { ...aServing('review', { projects: [{ path: 'group/else' }] }) };
    const workflows = [
      aServing(),
      { ...other, status: { projects: [{ path: 'group/else', botUserId: 99 }] } },
    ];
    expect(decide(reply, { workflows, ...thread(by(99, signed('s'))) })).toEqual(['Commentary']);
  });
});
