import type { Usage } from '../agent/models/port.ts';
import { addUsage, NO_USAGE } from '../agent/usage.ts';
import { type Delivery, type DeliverySettings, deliver } from '../delivery/deliver.ts';
import type { Levers } from '../delivery/levers.ts';
import type { Answer, Ask } from '../delivery/port.ts';
import { deliveryQuestions } from '../delivery/prompts/ask-delivery.ts';
import type { DeliveryPromptTexts } from '../delivery/prompts/system.ts';
import type { DeliveryCase } from './delivery-case.ts';
import { evalCharts } from './world/charts.ts';
import { type EvalRepository, evalRepository } from './world/repository.ts';

/** The shipped prompts and levers that a case is run with, and who answers. */
export interface DeliveryMeans {
  readonly prompts: DeliveryPromptTexts;
  readonly levers: Levers;
  /** Called once for each case; `onUsage` of every answer. */
  readonly askFor: (one: DeliveryCase, onUsage: (usage: Usage) => void) => Ask;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
}

/** What became of a case, before anybody judges it. */
export interface DeliveryRun {
  readonly delivery: Delivery;
  readonly repository: EvalRepository;
  /** What was shown to the model, and what it answered, in their order. */
  readonly asked: readonly { readonly user: string; readonly answer: Answer }[];
  readonly seconds: number;
  readonly usage: Usage;
}

const SETTINGS: Omit<DeliverySettings, 'allow'> = {
  deny: [],
  allOrNothing: true,
  maxDocuments: 5,
  explainGreen: true,
  migrateDroppedVersions: true,
  structuralMigration: true,
};

/** Takes a case through all that the operator does with a bump, from two commits to what would be pushed. */
export async function runDelivery(
  one: DeliveryCase,
  { prompts, levers, askFor, now }: DeliveryMeans,
  signal?: AbortSignal,
): Promise<DeliveryRun> {
  const { bump } = one;
  const repository = evalRepository(one);
  const { base, head } = repository;
  const asked: { readonly user: string; readonly answer: Answer }[] = [];
  let usage: Usage = NO_USAGE;
  const ask = askFor(one, (more) => {
    usage = addUsage(usage, more);
  });
  const watched: Ask = async (question, abort) => {
    const answer = await ask(question, abort);
    asked.push({ user: question.user, answer });
    return answer;
  };
  const { notes, commits, silence } = one;
  const charts = new Map([
    [bump.from, one.before],
    [bump.to, one.after],
  ]);
  const started = now();
  const delivery = await deliver(
    {
      bump: {
        project: 'platform/gitops',
        iid: 1,
        title: `Update ${bump.chart} to ${bump.to}`,
        headSha: head.sha,
        baseSha: base.sha,
        sourceBranch: 'bump',
        targetBranch: 'main',
        labels: [],
        fork: false,
      },
      base,
      head,
      settings: { ...SETTINGS, allow: one.allow },
    },
    {
      ...evalCharts(bump.chart, charts),
      questions: deliveryQuestions(watched, prompts, levers),
      live: async () => one.live,
      testimony: async () => ({
        ...(notes !== undefined && { notes }),
        ...(commits !== undefined && { commits }),
        ...(silence !== undefined && { silence }),
      }),
      levers,
    },
    signal,
  );
  return { delivery, repository, asked, seconds: (now() - started) / 1000, usage };
}
