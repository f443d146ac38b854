import { createHash } from 'node:crypto';
import { ALL_LEVERS } from '../../src/delivery/levers.ts';
import type { Bump, BumpWriter, CommitOutcome, TreeUnavailableError } from '../../src/delivery/port.ts';
import { deliveryQuestions } from '../../src/delivery/prompts/ask-delivery.ts';
import { loadDeliveryPrompts } from '../../src/delivery/prompts/files.ts';
import type { BumpRunParts } from '../../src/delivery/run/run-bump.ts';
import { aChart } from './charts.ts';
import { aTree } from './tree.ts';

export const HEAD = 'c'.repeat(40);
const BASE = 'b'.repeat(40);
export const PUSHED = 'd'.repeat(40);
const PATH = 'apps/web.yaml';
export const deliveryPrompts = await loadDeliveryPrompts();

export const application = (version: string): string =>
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
/** A verdict that repairs it. */
export const FIX = {
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
export const ESCALATION = {
  classification: 'escalate',
  summary: 'Somebody has to decide',
  reasoning: 'Open apps/web.yaml',
  edits: [],
  escalationReason: 'a Service goes away',
};

/** GitLab, the store and the model of one run; `killAt` throws at that act, once, after it was done or before. */
export function aBump(options: {
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
      deliveryPrompts,
      ALL_LEVERS,
    ),
    live: async () => undefined,
    testimony: async () => ({}),
  };
  return { parts, acts, commits, labels, statuses, asked: () => asked };
}
