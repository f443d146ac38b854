import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { aChart } from '../../../test/builders/charts.ts';
import { aTree } from '../../../test/builders/tree.ts';
import { ALL_LEVERS } from '../levers.ts';
import { type Bump, type BumpWriter, type CommitOutcome, TreeUnavailableError } from '../port.ts';
import { deliveryQuestions } from '../prompts/ask-delivery.ts';
import { loadDeliveryPrompts } from '../prompts/files.ts';
import { attemptsOf } from './labels.ts';
import { type BumpRun, type BumpRunParts, runBump } from './run-bump.ts';

const HEAD = 'c'.repeat(40);
const BASE = 'b'.repeat(40);
const PUSHED = 'd'.repeat(40);
const PATH = 'apps/web.yaml';
const texts = await loadDeliveryPrompts();

const application = (version: string): string =>
  `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  destination: {server: https://kubernetes.default.svc, namespace: apps}
  source:
    repoURL: https://charts.example.org
    chart: web
    targetRevision: ${version}
    helm:
      valuesObject:
        daemon: true
`;
const FIX = {
  classification: 'mechanical',
  summary: 'The daemon is switched off again',
  reasoning: '',
  edits: [
    {
      path: PATH,
      key: 'spec.source.helm.valuesObject.daemon',
      from: 'true',
      to: 'false',
      rationale: 'Both exclude each other now.',
    },
  ],
  escalationReason: '',
};
const ESCALATION = {
  classification: 'escalate',
  summary: 'Somebody has to decide',
  reasoning: 'Open apps/web.yaml',
  edits: [],
  escalationReason: 'a Service goes away',
};

/** GitLab, the store and the model of one run; `killAt` throws at that act, once, after it was done or before. */
function aWorld(options: {
  readonly bump?: Partial<Bump>;
  readonly verdict?: unknown;
  readonly commit?: CommitOutcome;
  readonly tree?: TreeUnavailableError;
  readonly killAt?: { readonly act: number; readonly done: boolean };
}) {
  const acts: string[] = [];
  const commits: { sha: string; message: string; text: string }[] = [];
  const labels = new Set(options.bump?.labels ?? []);
  const statuses: string[] = [];
  let asked = 0;
  let kept: string | undefined;
  let killed = false;

  async function acted<T>(name: string, effect: () => T): Promise<T> {
    acts.push(name);
    const due = !killed && acts.length === options.killAt?.act;
    killed ||= due;
    if (due && options.killAt?.done === false) throw new Error('killed');
    const value = effect();
    if (due) throw new Error('killed');
    return value;
  }

  const head = () => commits.at(-1)?.sha ?? options.bump?.headSha ?? HEAD;
  const writer: BumpWriter = {
    ownCommit: (_, trailer) =>
      acted('search', () => commits.find(({ message }) => message.includes(trailer))?.sha),
    addLabels: (_, added) =>
      acted(`label ${added.join()}`, () => {
        for (const one of added) labels.add(one);
      }),
    setStatus: (bump, { state, description }) =>
      acted(
        `status ${state}`,
        () => void statuses.push(`${bump.headSha.slice(0, 1)} ${state}: ${description}`),
      ),
    commit: (_, { message, files, expectedHead }) =>
      acted('commit', (): CommitOutcome => {
        if (options.commit !== undefined) return options.commit;
        if (expectedHead !== head()) return { kind: 'Moved', message: 'the branch moved' };
        commits.push({ sha: PUSHED, message, text: new TextDecoder().decode(files[0]?.bytes) });
        return { kind: 'Committed', sha: PUSHED };
      }),
  };
  const parts: BumpRunParts = {
    reader: {
      bump: async () => ({
        kind: 'Bump',
        bump: {
          project: 'group/app',
          iid: 7,
          title: 'Move web',
          baseSha: BASE,
          sourceBranch: 'bump',
          targetBranch: 'main',
          fork: false,
          ...options.bump,
          headSha: head(),
          labels: [...labels],
        },
      }),
      tree: async (_, sha) => {
        if (options.tree !== undefined) throw options.tree;
        return aTree({ [PATH]: application(sha === BASE ? '1.0.0' : '2.0.0') }, sha);
      },
    },
    writer,
    decision: {
      read: async () => kept,
      keep: (text) => acted('keep', () => (kept ??= text)),
    },
    charts: {
      async fetch(reference) {
        const { bytes } = aChart(reference.version);
        return { reference, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
      },
    },
    helm: {
      async template({ chart, values }) {
        const old = Buffer.from(chart).equals(Buffer.from(aChart('1.0.0').bytes));
        const shown = old || /daemon: false/.test(values.join());
        return {
          kind: 'Rendered',
          manifests: shown ? 'apiVersion: v1\nkind: Service\nmetadata: {name: native}\n' : '',
        };
      },
    },
    questions: deliveryQuestions(
      async () => {
        asked += 1;
        return { kind: 'Answered', value: options.verdict ?? FIX };
      },
      texts,
      ALL_LEVERS,
    ),
    live: async () => undefined,
    testimony: async () => ({}),
  };
  return { parts, acts, commits, labels, statuses, asked: () => asked };
}

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
    const world = aWorld({});
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
    const world = aWorld({ killAt });
    await expect(runBump(RUN, world.parts)).rejects.toThrow('killed');
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Push', commit: PUSHED });
    expect(world.commits).toHaveLength(1);
    expect([...world.labels]).toEqual(['hummingbird/attempt-1']);
    // What was kept is not asked again.
    expect(world.asked()).toBe(killAt.act === 2 && !killAt.done ? 2 : 1);
    expect(world.statuses.at(-1)).toMatch(/^d success/);
  });

  it('calls people by a label, and says what is in the way', async () => {
    const world = aWorld({ verdict: ESCALATION });
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
    const world = aWorld({ bump: { labels: ['hummingbird/attempt-2'] } });
    const end = await runBump(RUN, world.parts);
    expect(end).toMatchObject({ kind: 'Done', outcome: 'Escalate' });
    expect(world.asked()).toBe(0);
    expect(end.kind === 'Done' && end.text).toContain('tried 2 times');
  });

  it('leaves what people have taken over', async () => {
    const world = aWorld({ bump: { labels: ['needs-human'] } });
    expect(await runBump(RUN, world.parts)).toMatchObject({ kind: 'Left' });
    expect(world.acts).toEqual(['status success']);
  });

  it.each<[string, Parameters<typeof aWorld>[0], string, RegExp]>([
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
    const world = aWorld(options);
    const end = await runBump(RUN, world.parts);
    expect(end.kind).toBe(kind);
    expect(JSON.stringify(end)).toMatch(message);
    expect(world.commits).toEqual([]);
    if (kind === 'Done') expect([...world.labels]).toContain('needs-human');
  });
});

describe('attemptsOf', () => {
  it.each([
    [[], 0],
    [['other', 'hummingbird/attempt-x'], 0],
    [['hummingbird/attempt-1', 'hummingbird/attempt-3'], 3],
  ])('%j: %i', (labels, attempts) => {
    expect(attemptsOf(labels)).toBe(attempts);
  });
});
