import { describe, expect, it } from 'vitest';
import {
  ALICE,
  aBridge,
  aMergeRequestEvent,
  aNote,
  aPipeline,
  aServing,
  BOT,
  levels,
  OPERATOR,
  trusting,
  words,
} from '../../../test/builders/bridge.ts';
import type { Facts, Verdict, World } from './decision.ts';
import { decideMergeRequest } from './merge-request.ts';
import { decideNote } from './note.ts';
import { decidePipeline } from './pipeline.ts';

/** What would start a run, by each of the ways in which one can be asked for. */
const WAYS: Readonly<Record<string, (world: World) => Verdict>> = {
  'a failed pipeline': (world) => decidePipeline(aPipeline(), world),
  'a merge request': (world) => decideMergeRequest(aMergeRequestEvent(), world),
  'a push': (world) => decideMergeRequest(aMergeRequestEvent({ action: 'update', pushed: true }), world),
  'a command': (world) => decideNote(aNote({ text: '/hummingbird analyze' }), world),
  'a command in a thread': (world) =>
    decideNote(aNote({ text: '/hummingbird analyze', inDiscussion: true }), world),
};

describe('every way to a run', () => {
  const outcome = (way: string, facts: Facts) => words(WAYS[way]?.(aBridge({ facts })) ?? fail(way)).join();
  const fail = (way: string): never => {
    throw new Error(way);
  };

  it.each(Object.keys(WAYS))('invariant 8: %s starts a run for a Developer', (way) => {
    expect(outcome(way, trusting())).toContain('CreateRun');
  });

  it.each(Object.keys(WAYS).flatMap((way) => [0, 5, 10, 15, 20, 29].map((level) => [way, level] as const)))(
    'invariant 8: %s starts none for somebody of level %i',
    (way, level) => {
      const said = outcome(way, trusting({ access: levels({ [ALICE.id]: level }) }));
      expect(said).toContain('AccessDenied');
      expect(said).not.toContain('CreateRun');
    },
  );

  it.each(Object.keys(WAYS))(
    'invariant 8: %s starts none before GitLab was asked, nor when it refuses to tell',
    (way) => {
      const { access: _unknown, ...rest } = trusting();
      expect(outcome(way, rest)).toBe(`ask Access ${ALICE.id}`);
      const refused = { kind: 'Refused', status: 403, message: 'no' } as const;
      expect(outcome(way, trusting({ access: new Map([[ALICE.id, refused]]) }))).not.toContain('CreateRun');
    },
  );
});

describe('what we have said ourselves', () => {
  const texts = ['/hummingbird analyze', '/hummingbird', 'Please look again.'];
  const others = { ...aServing('review', { projects: [{ path: 'group/else' }] }), status: undefined };
  const elsewhere = { ...others, status: { projects: [{ path: 'group/else', botUserId: 99 }] } };
  const workflows = [aServing(), elsewhere];

  it.each([
    ['the bot of this workflow', BOT],
    ['the bot of another workflow on another project', 99],
    ['the user of the operator', OPERATOR],
  ])('invariant 7: asks nobody: by %s', (_who, id) => {
    // A bot is a member, so its level does not keep it from commands.
    const facts = trusting({ access: levels({ [id]: 40 }) });
    for (const text of texts)
      for (const inDiscussion of [true, false]) {
        const event = aNote({ text, inDiscussion, author: { id, name: 'bot' } });
        const said = words(decideNote(event, aBridge({ facts, workflows }))).join();
        expect(said).toMatch(text.startsWith('/') ? /^OwnNote$/ : /^(OwnNote|Commentary)$/);
      }
  });

  it('invariant 7: is told by who has written it, not by what it looks like', () => {
    const text = '/hummingbird analyze\n\n<!-- hummingbird-session: {"id":"x","wf":"analyze"} -->';
    expect(words(decideNote(aNote({ text }), aBridge({ workflows })))).toEqual(['CreateRun']);
  });
});
