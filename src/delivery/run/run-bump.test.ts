import { describe, expect, it } from 'vitest';
import { aBump, application, ESCALATION, HEAD, PUSHED } from '../../../test/builders/bump.ts';
import { TreeUnavailableError } from '../port.ts';
import { type BumpRun, runBump } from './run-bump.ts';

const RUN: BumpRun = {
  uid: 'uid-1',
  workflow: 'bumps',
  at: { project: 'group/app', iid: 7 },
  sha: HEAD,
  settings: {
    allow: ['apps/**'],
    deny: [],
    allOrNothing: true,
    maxDocuments: 5,
    explainGreen: true,
    migrateDroppedVersions: true,
    structuralMigration: true,
    maxAttempts: 2,
    needsHumanLabel: 'needs-human',
    statusName: 'bumps',
  },
};

describe('runBump', () => {
  it('repairs: the label before the push, one commit with the run in it, a status on what was pushed', async () => {
    const world = aBump({});
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Push', commit: PUSHED });
    expect(world.acts).toEqual([
      'status pending',
      'keep',
      'search',
      'label hummingbird/attempt-1',
      'commit',
      'status success',
    ]);
    expect(world.commits[0]?.text).toBe(application('2.0.0').replace('daemon: true', 'daemon: false'));
    expect(world.commits[0]?.message).toMatch(/\n\nHummingbird-Run: uid-1\n$/);
    expect(world.statuses).toEqual([
      'c pending: reading what the bump changes',
      'd success: fixed: 1 value was edited',
    ]);
    expect(end.kind === 'Done' && end.text).toContain('Pushed as `dddddddddddd`, attempt 1 of 2.');
  });

  it.each(
    [1, 2, 3, 4, 5, 6].flatMap((act) => [
      { act, done: true },
      { act, done: false },
    ]),
  )('killed at act $act (done: $done), it pushes once and ends the same', async (killAt) => {
    const world = aBump({ killAt });
    await expect(runBump(RUN, world.parts)).rejects.toThrow('killed');
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Push', commit: PUSHED });
    expect(world.commits).toHaveLength(1);
    expect([...world.labels]).toEqual(['hummingbird/attempt-1']);
    // What was kept is not asked again.
    expect(world.asked()).toBe(killAt.act === 2 && !killAt.done ? 2 : 1);
    expect(world.statuses.at(-1)).toMatch(/^d success/);
  });

  it('says on whose push the repair stands, where one of other files came in the same moment', async () => {
    const world = aBump({ commit: { kind: 'Committed', sha: PUSHED, onto: 'e'.repeat(40) } });
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Push', commit: PUSHED });
    expect(end.kind === 'Done' && end.text).toContain('**It stands on `eeeeeeeeeeee`**');
  });

  it('calls people by a label, and says what is in the way', async () => {
    const world = aBump({ verdict: ESCALATION });
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({
      kind: 'Done',
      outcome: 'Escalate',
      message: 'needs a person: a Service goes away',
    });
    expect([...world.labels]).toEqual(['needs-human']);
    expect(world.commits).toEqual([]);
    expect(end.kind === 'Done' && end.text).not.toContain('a Service goes away');
    expect(end.kind === 'Done' && end.text).toMatch(
      /^### Needs a person\n\n\*\*Somebody has to decide\*\*\n\nOpen apps/,
    );
  });

  it('G7: tries as often as it may, counted by labels', async () => {
    const world = aBump({ bump: { labels: ['hummingbird/attempt-2'] } });
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Escalate' });
    expect(world.asked()).toBe(0);
    expect(end.kind === 'Done' && end.text).toContain('tried 2 times');
  });

  it('leaves what people have taken over', async () => {
    const world = aBump({ bump: { labels: ['needs-human'] } });
    expect(await runBump(RUN, world.parts)).toMatchObject({ kind: 'Left' });
    expect(world.acts).toEqual(['status success']);
  });

  it.each<[string, Parameters<typeof aBump>[0], string, RegExp]>([
    [
      'another head by the time it looks',
      { bump: { headSha: 'e'.repeat(40) } },
      'Superseded',
      /is at eeeeeeeeeeee/,
    ],
    [
      'a branch that moved meanwhile',
      { commit: { kind: 'Moved', message: 'a newer push' } },
      'Superseded',
      /newer push/,
    ],
    ['a fork', { bump: { fork: true } }, 'Done', /not pushed, since the merge request comes from a fork/],
    [
      'a protected branch',
      { commit: { kind: 'Refused', status: 403, message: 'no' } },
      'Done',
      /GitLab answers 403/,
    ],
    [
      'a repository that is too large',
      { tree: new TreeUnavailableError('The archive has too many files.') },
      'Done',
      /too many files/,
    ],
  ])('pushes nothing over %s', async (_, options, kind, message) => {
    const world = aBump(options);
    const end = await runBump(RUN, world.parts);
    expect(end.kind).toBe(kind);
    expect(JSON.stringify(end)).toMatch(message);
    expect(world.commits).toEqual([]);
    if (kind === 'Done') expect([...world.labels]).toContain('needs-human');
  });
});
