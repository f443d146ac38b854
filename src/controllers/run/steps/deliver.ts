import type { Model } from '../../../agent/models/port.ts';
import { callCostUsd } from '../../../agent/pricing.ts';
import { addUsage, NO_USAGE } from '../../../agent/usage.ts';
import type { AgentWorkflow } from '../../../crds/agent-workflow.ts';
import { clip } from '../../../crds/shapes.ts';
import { askWith } from '../../../delivery/ask.ts';
import { ALL_LEVERS } from '../../../delivery/levers.ts';
import type { Ask, Helm } from '../../../delivery/port.ts';
import { deliveryQuestions } from '../../../delivery/prompts/ask-delivery.ts';
import {
  type BumpEnd,
  type BumpRun,
  type BumpRunParts,
  type Kept,
  runBump,
} from '../../../delivery/run/run-bump.ts';
import { sleep } from '../../../kube/clock.ts';
import { SandboxLostError } from '../../../sandbox/port.ts';
import type { ObjectStore } from '../../../store/port.ts';
import type { DeliveryMeans } from '../deps.ts';
import { Execution, STOPPING_MS, StopReason } from '../execution.ts';
import { countsOf } from '../loop-report.ts';
import { pricesOf } from '../prices.ts';
import { bytesOf, type LoopProgress, money, type RunResult, runPrefix } from '../result.ts';
import { nextStatus, type StepContext, type StepResult, withOutcome } from '../step.ts';
import { anotherSandbox } from './another-sandbox.ts';

type Delivery = NonNullable<AgentWorkflow['spec']['delivery']>;

/** Between two tries while GitLab is away; the run's own time ends them. */
const RETRY_MS = { first: 2_000, most: 60_000 };

/** Starts a run on a chart bump in the background. It may be started again at any time: what was decided is kept. */
export async function startDelivery(
  context: StepContext,
  workflow: AgentWorkflow,
  delivery: Delivery,
): Promise<StepResult> {
  const { deps, run, local } = context;
  const uid = run.metadata.uid ?? '';
  const { project } = run.spec.mergeRequest;
  const [model, means] = await Promise.all([
    deps.model(workflow, run.spec.model?.name),
    deps.delivery(workflow, project),
  ]);
  if (model.kind === 'Invalid') return withOutcome(context, 'InvalidSpec', model.message);
  if (means.kind === 'Invalid') return withOutcome(context, 'InvalidSpec', means.message);
  if (context.effective.pool === undefined)
    return withOutcome(
      context,
      'InvalidSpec',
      'a chart bump is rendered in a sandbox: set spec.sandbox.poolRef of the run or its workflow',
    );
  const work = (signal: AbortSignal, report: (progress: LoopProgress) => void) =>
    deliverToEnd(context, { workflow, delivery, model: model.value, means: means.value, signal, report });
  if (local.stopping) return { afterMs: STOPPING_MS };
  local.executions.set(uid, new Execution(work, context.wake));
  deps.events.record(
    run,
    'Normal',
    'DeliveryStarted',
    `Reading the bump; ${model.value.name} is asked where code cannot tell`,
  );
  return {
    status: nextStatus(
      context,
      { phase: 'Running' },
      { type: 'Succeeded', status: 'Unknown', reason: 'Running', message: 'the bump is looked at' },
    ),
  };
}

interface DeliveryInput {
  readonly workflow: AgentWorkflow;
  readonly delivery: Delivery;
  readonly model: Model;
  readonly means: DeliveryMeans;
  readonly signal: AbortSignal;
  readonly report: (progress: LoopProgress) => void;
}

/** Never rejects. What may pass is tried until the run's time is over: each try finds what the one before has done. */
async function deliverToEnd(context: StepContext, input: DeliveryInput): Promise<RunResult> {
  const { deps, run } = context;
  const { signal } = input;
  for (let pauseMs = RETRY_MS.first; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS.most)) {
    try {
      const end = await runBump(bumpRun(context, input), partsOf(context, input), signal);
      return told(context, input.workflow, end);
    } catch (error) {
      if (signal.aborted) return stopped(signal.reason);
      const message = clip(deps.redact(messageOf(error)));
      deps.log.warn({ run: run.metadata.name, err: error }, 'the bump could not be dealt with');
      if (!isPassing(error)) return ended('ModelError', message);
      deps.events.record(run, 'Warning', 'DeliveryRetry', message);
      try {
        await sleep(deps.clock, pauseMs, signal);
      } catch {
        return stopped(signal.reason);
      }
    }
  }
}

function bumpRun({ run }: StepContext, { delivery, workflow }: DeliveryInput): BumpRun {
  const { edits } = delivery;
  const name = workflow.metadata.name ?? '';
  return {
    uid: run.metadata.uid ?? '',
    workflow: name,
    at: run.spec.mergeRequest,
    sha: run.status?.sha ?? '',
    settings: {
      allow: edits.allowPaths,
      deny: edits.denyPaths,
      allOrNothing: edits.allOrNothing,
      maxAttempts: edits.maxAttempts,
      maxDocuments: delivery.migrateMaxDocs,
      explainGreen: delivery.explainGreen,
      migrateDroppedVersions: delivery.migrateDroppedVersions,
      structuralMigration: delivery.structuralMigration,
      needsHumanLabel: delivery.needsHumanLabel,
      statusName: delivery.statusName ?? name,
    },
  };
}

function partsOf(context: StepContext, input: DeliveryInput): BumpRunParts {
  const { deps, run } = context;
  const { means } = input;
  return {
    ...means,
    helm: helmOf(context, means),
    questions: deliveryQuestions(askOf(context, input), means.prompts, ALL_LEVERS),
    decision: keptIn(deps.store, `${runPrefix(run.metadata.uid ?? '')}/decision.json`),
  };
}

/** In the run's sandbox; in another one when that is lost, once for each template. */
function helmOf(context: StepContext, means: DeliveryMeans): Helm {
  const { local, run } = context;
  const uid = run.metadata.uid ?? '';
  return {
    async template(request, signal) {
      const sandbox = local.sandboxes.get(uid);
      try {
        if (sandbox === undefined) throw new SandboxLostError('the run has no sandbox');
        return await means.helmIn(sandbox).template(request, signal);
      } catch (error) {
        if (!(error instanceof SandboxLostError)) throw error;
        const another = await anotherSandbox(context, signal ?? new AbortController().signal);
        if (another === undefined) throw error;
        return await means.helmIn(another).template(request, signal);
      }
    },
  };
}

/** Counts what is spent, stops at the budget, and shows the model no secret that this process knows. */
function askOf({ deps, effective }: StepContext, { workflow, model, report }: DeliveryInput): Ask {
  const prices = pricesOf(workflow.spec.model, deps.clock.now().getTime());
  let usage = NO_USAGE;
  let costUsd: number | undefined = 0;
  let calls = 0;
  const ask = askWith(model, {
    onUsage(used) {
      calls += 1;
      usage = addUsage(usage, used);
      const cost = callCostUsd(model.name, used, prices);
      costUsd = cost === undefined || costUsd === undefined ? undefined : costUsd + cost;
      report({
        iterations: calls,
        toolCalls: 0,
        usage: countsOf(usage),
        costUSD: costUsd === undefined ? undefined : money(costUsd),
      });
    },
  });
  return async (question, signal) => {
    if (calls >= effective.maxIterations)
      return { kind: 'Unreachable', message: `the run's ${effective.maxIterations} model calls are used up` };
    if (effective.budgetUsd !== undefined && costUsd !== undefined && costUsd >= effective.budgetUsd)
      return { kind: 'Unreachable', message: `the run's budget of $${effective.budgetUsd} is used up` };
    return await ask({ ...question, user: deps.redact(question.user) }, signal);
  };
}

function keptIn(store: ObjectStore, key: string): Kept {
  const read = async () => {
    const stored = await store.get(key);
    return stored === undefined ? undefined : (await bytesOf(stored)).toString('utf8');
  };
  return {
    read,
    async keep(text) {
      const put = await store.put(key, Buffer.from(text), {
        ifNoneMatch: true,
        contentType: 'application/json',
      });
      const kept = put.kind === 'Stored' ? text : await read();
      if (kept === undefined) throw new Error(`${store.location}${key}: was there a moment ago and is gone`);
      return kept;
    },
  };
}

function told({ deps, run }: StepContext, workflow: AgentWorkflow, end: BumpEnd): RunResult {
  const name = workflow.metadata.name ?? '';
  switch (end.kind) {
    case 'Done':
      deps.metrics.delivered(name, end.outcome);
      if (end.commit !== undefined)
        deps.events.record(run, 'Normal', 'BumpRepaired', `Pushed ${end.commit}: ${end.message}`);
      if (end.outcome === 'Escalate') deps.events.record(run, 'Warning', 'BumpEscalated', end.message);
      return { ...ended('Succeeded', end.message), text: end.text, reported: true };
    case 'Left':
      deps.metrics.delivered(name, 'Left');
      return ended('SkippedRule', end.message);
    case 'Superseded':
      return ended('Superseded', end.message);
    case 'Refused':
      return ended('AccessDenied', end.message);
  }
}

const ended = (reason: RunResult['reason'], message: string): RunResult => ({
  version: 1,
  reason,
  message: clip(message),
  text: message,
  reported: false,
  transcriptExcerpt: '',
});

function stopped(why: unknown): RunResult {
  const kind = why instanceof StopReason ? why.kind : 'Cancelled';
  const message = messageOf(why);
  return ended(kind === 'Timeout' || kind === 'Superseded' ? kind : 'Cancelled', message);
}

/** Whether somebody who is away may come back: GitLab, the store, the sandboxes. */
const isPassing = (error: unknown): boolean =>
  error instanceof SandboxLostError ||
  (error instanceof Error && 'retryable' in error && error.retryable === true);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
