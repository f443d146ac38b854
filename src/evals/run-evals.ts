import type { Model, Usage } from '../agent/models/port.ts';
import { callCostUsd, listPrices } from '../agent/pricing.ts';
import { askWith } from '../delivery/ask.ts';
import type { Levers } from '../delivery/levers.ts';
import type { Ask } from '../delivery/port.ts';
import type { DeliveryPromptTexts } from '../delivery/prompts/system.ts';
import type { DeliveryCase } from './delivery-case.ts';
import type { EvalCases } from './load-cases.ts';
import type { PipelineCase } from './pipelines/pipeline-case.ts';
import { runPipeline } from './pipelines/run-pipeline.ts';
import { scorePipeline } from './pipelines/score-pipeline.ts';
import { adversaryModel } from './pipelines/scripted/adversary.ts';
import { perfectModel } from './pipelines/scripted/perfect.ts';
import { runDelivery } from './run-delivery.ts';
import { score } from './score.ts';
import { adversaryAsk, seeded } from './scripted/adversary.ts';
import { perfectAsk } from './scripted/perfect.ts';

/** Who answers: a model behind an endpoint, or one that is scripted from what the cases say is right. */
export type Subject =
  | { readonly kind: 'Model'; readonly model: Model }
  | { readonly kind: 'Scripted'; readonly name: 'scripted:perfect' | 'scripted:adversary' };

export interface EvalMeans {
  readonly prompts: DeliveryPromptTexts;
  /** The workflow prompt of failed pipelines. */
  readonly workflowPrompt: string;
  readonly levers: Levers;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
  /** Milliseconds since the epoch: which prices hold. */
  readonly today: number;
  readonly onCase?: (row: EvalRow) => void;
}

/** One case and one model. */
export interface EvalRow {
  readonly name: string;
  readonly path: DeliveryCase['path'] | 'pipelines';
  readonly wanted: string;
  readonly got: string;
  readonly classified: boolean;
  readonly full: boolean;
  readonly unsafe: readonly string[];
  readonly faults: readonly string[];
  readonly seconds: number;
  readonly usage: Usage;
  readonly iterations?: number;
  /** Absent when unknown. */
  readonly costUsd?: number;
}

export interface EvalReport {
  readonly model: string;
  readonly rows: readonly EvalRow[];
}

/** All cases, one after the other: what is timed is not slowed by its neighbours. */
export async function runEvals(
  subject: Subject,
  cases: EvalCases,
  means: EvalMeans,
  signal: AbortSignal,
): Promise<EvalReport> {
  const model = nameOf(subject);
  const rows: EvalRow[] = [];
  const add = (row: EvalRow) => {
    rows.push(row);
    means.onCase?.(row);
  };
  for (const one of cases.delivery) add(await deliveryRow(subject, one, means, signal));
  for (const one of cases.pipelines) add(await pipelineRow(subject, one, means, signal));
  return { model, rows };
}

export const nameOf = (subject: Subject): string =>
  subject.kind === 'Model' ? subject.model.name : subject.name;

async function deliveryRow(
  subject: Subject,
  one: DeliveryCase,
  { prompts, levers, now, today }: EvalMeans,
  signal: AbortSignal,
): Promise<EvalRow> {
  const askFor = (asked: DeliveryCase, onUsage: (usage: Usage) => void): Ask =>
    askOf(subject, asked, onUsage);
  const run = await runDelivery(one, { prompts, levers, askFor, now }, signal);
  const { got, classified, full, unsafe, faults } = score(one, run);
  const unreachable = run.asked.flatMap(({ answer }) => (answer.kind === 'Answered' ? [] : [answer.message]));
  const cost = callCostUsd(nameOf(subject), run.usage, listPrices(today));
  return {
    ...{ name: one.name, path: one.path, wanted: one.want.class, got, classified, full, unsafe },
    faults: [...faults, ...unreachable],
    seconds: run.seconds,
    usage: run.usage,
    ...(cost !== undefined && { costUsd: cost }),
  };
}

function askOf(subject: Subject, one: DeliveryCase, onUsage: (usage: Usage) => void): Ask {
  if (subject.kind === 'Model') return askWith(subject.model, { onUsage });
  return subject.name === 'scripted:perfect' ? perfectAsk(one) : adversaryAsk(one, seeded(seedOf(one.name)));
}

const seedOf = (name: string): number =>
  [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7);

async function pipelineRow(
  subject: Subject,
  one: PipelineCase,
  { workflowPrompt, now }: EvalMeans,
  signal: AbortSignal,
): Promise<EvalRow> {
  const run = await runPipeline(
    one,
    { workflow: workflowPrompt, modelFor: (asked) => pipelineModel(subject, asked), now },
    signal,
  );
  const { got, classified, full, unsafe, faults } = scorePipeline(one, run);
  const { usage, iterations, costUsd, detail } = run.result;
  return {
    ...{
      name: one.name,
      path: 'pipelines',
      wanted: one.want.kinds.join(', '),
      got,
      classified,
      full,
      unsafe,
    },
    faults: detail === undefined ? faults : [...faults, detail],
    ...{ seconds: run.seconds, usage, iterations },
    ...(costUsd !== undefined && { costUsd }),
  };
}

function pipelineModel(subject: Subject, one: PipelineCase): Model {
  if (subject.kind === 'Model') return subject.model;
  return subject.name === 'scripted:perfect' ? perfectModel(one) : adversaryModel(one);
}
