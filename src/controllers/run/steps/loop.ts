import { runLoop } from '../../../agent/loop.ts';
import type { LoopEvent } from '../../../agent/loop-events.ts';
import type { ModelPrice } from '../../../agent/pricing.ts';
import { systemPrompt } from '../../../agent/prompts.ts';
import type { Tool } from '../../../agent/tools/port.ts';
import { createRegistry, type ToolRegistry } from '../../../agent/tools/registry.ts';
import { createSpillCounter } from '../../../agent/tools/spill.ts';
import type { AgentRunStatus } from '../../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../../crds/agent-workflow.ts';
import { clip } from '../../../crds/shapes.ts';
import type { Resolved } from '../../../settings/references.ts';
import type { OpenTools } from '../../../sources/port.ts';
import { Questions } from '../approvals.ts';
import { FencedError, newestCheckpoint, saveCheckpoint } from '../checkpoints.ts';
import { readEarlier } from '../earlier.ts';
import { Execution, STOPPING_MS, StopReason } from '../execution.ts';
import { calledTool } from '../local.ts';
import { countsOf, resultOf } from '../loop-report.ts';
import { pricesOf } from '../prices.ts';
import { digestOf, keepPrompt, readPrompt } from '../prompt.ts';
import { keepResult, type LoopProgress, money, type RunResult } from '../result.ts';
import { nextStatus, type StepContext, type StepResult, withOutcome } from '../step.ts';
import { anotherSandbox } from './another-sandbox.ts';
import { type BeginningInput, beginning } from './beginning.ts';
import { startDelivery } from './deliver.ts';
import { connectedServers, type ServersInput } from './tool-servers.ts';

/** Starts the agent loop of this run in the background, where its newest checkpoint stands. */
export async function startLoop(context: StepContext): Promise<StepResult> {
  const { deps, run, local, workflow } = context;
  const uid = run.metadata.uid ?? '';
  if (workflow === undefined)
    return withOutcome(
      context,
      'InvalidSpec',
      `AgentWorkflow ${run.spec.workflowRef.name} was deleted during the run`,
    );
  if (workflow.spec.delivery !== undefined) return startDelivery(context, workflow, workflow.spec.delivery);
  const [model, prompt] = await Promise.all([
    deps.model(workflow, run.spec.model?.name),
    promptOf(context, workflow),
  ]);
  if (model.kind === 'Invalid') return withOutcome(context, 'InvalidSpec', model.message);
  if (prompt.kind === 'Invalid') return withOutcome(context, 'InvalidSpec', prompt.message);
  const source = {
    namespace: workflow.metadata.namespace ?? '',
    name: workflow.metadata.name ?? '',
    ...(run.status?.workflow && { revision: run.status.workflow.revision }),
  };
  const [tools, resume, earlier] = await Promise.all([
    deps.sources.toolsFor({
      workflow: source,
      scope: { ...run.spec.mergeRequest, sha: run.status?.sha ?? '' },
    }),
    // A run that never reached the loop has nothing to look for.
    run.status?.phase === 'Running' ? newestCheckpoint(deps.store, uid) : undefined,
    run.spec.sessionRef === undefined ? undefined : readEarlier(deps.store, uid),
  ]);
  const questions = new Questions({
    runUid: uid,
    known: run.status?.approvals ?? [],
    redact: deps.redact,
    onChange: () => context.wake(),
  });
  const work = (signal: AbortSignal, report: (progress: LoopProgress) => void) =>
    workToEnd(context, {
      model: model.value,
      prompt: prompt.value,
      promptKept: kept(context, workflow, prompt.value),
      prices: pricesOf(workflow.spec.model, deps.clock.now().getTime()),
      ...{ tools, earlier },
      openServers: () => deps.toolServers.open({ workflow: source, ask: questions.ask, signal }),
      resume: resume?.state,
      signal,
      report,
    });
  if (local.stopping) return { afterMs: STOPPING_MS };
  local.executions.set(uid, new Execution(work, context.wake, questions));
  deps.events.record(
    run,
    'Normal',
    resume === undefined ? 'LoopStarted' : 'LoopResumed',
    resume === undefined
      ? `Asking ${model.value.name}`
      : `Going on from checkpoint ${resume.ref.sequence} after ${resume.state.iteration} model calls`,
  );
  return {
    status: nextStatus(
      context,
      { phase: 'Running', promptDigest: digestOf(prompt.value) },
      {
        type: 'Succeeded',
        status: 'Unknown',
        reason: 'Running',
        message: `${model.value.name} is at work`,
      },
    ),
  };
}

/** The prompt that the run began with: a ConfigMap or the image may have another one by now. */
async function promptOf({ deps, run }: StepContext, workflow: AgentWorkflow): Promise<Resolved<string>> {
  if (run.status?.phase !== 'Running' || isInSpec(workflow)) return deps.prompt(workflow);
  const begun = await readPrompt(deps.store, run.metadata.uid ?? '').catch((error: unknown) => {
    // A store that is down must not cost the answer.
    deps.log.warn({ run: run.metadata.name, err: error }, 'the prompt of the run could not be read');
    return undefined;
  });
  return begun === undefined ? deps.prompt(workflow) : { kind: 'Ok', value: begun };
}

/** Keeps what a run begins with. Beside its first call: whoever takes it over needs it once there is a checkpoint. */
async function kept({ deps, run }: StepContext, workflow: AgentWorkflow, prompt: string): Promise<void> {
  if (run.status?.phase === 'Running' || isInSpec(workflow)) return;
  await keepPrompt(deps.store, run.metadata.uid ?? '', prompt).catch((error: unknown) =>
    deps.log.warn({ run: run.metadata.name, err: error }, 'the prompt could not be kept for the run'),
  );
}

/** Which is kept. */
const isInSpec = ({ spec }: AgentWorkflow): boolean => spec.prompt?.text !== undefined;

/** Writes what the loop has reported since the last look. */
export function recordProgress(context: StepContext): StepResult {
  const progress = executionOf(context)?.progress;
  return progress === undefined
    ? {}
    : { status: nextStatus(context, { phase: 'Running', ...statusOf(progress) }) };
}

/** Makes the loop's end the run's outcome: stored first, so that a restarted operator tells the same one. */
export async function takeResult(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  const uid = run.metadata.uid ?? '';
  const execution = executionOf(context);
  const result = execution?.result;
  if (execution === undefined || result === undefined) return {};
  const progress = execution.progress === undefined ? {} : statusOf(execution.progress);
  try {
    const kept = await keepResult(deps.store, uid, result);
    const { key, sha256, bytes } = kept;
    const { reason, message } = kept.result;
    return withOutcome(context, reason, message, {
      ...progress,
      outcome: { key, sha256, bytes, reason, message, time: deps.clock.now().toISOString() },
    });
  } catch (error) {
    // The note is worth more than the record: go on with what this process holds.
    deps.log.warn(
      { run: run.metadata.name, err: error },
      'the result could not be stored; reporting it from memory',
    );
    deps.events.record(run, 'Warning', 'ResultNotStored', `${deps.store.location}: ${messageOf(error)}`);
    return withOutcome(context, result.reason, result.message, progress);
  }
}

interface LoopInput extends BeginningInput, ServersInput {
  readonly prompt: string;
  /** Resolves when a later holder would find it; never rejects. */
  readonly promptKept: Promise<void>;
  readonly prices: readonly ModelPrice[];
  readonly report: (progress: LoopProgress) => void;
}

/** Never rejects: what the loop cannot go on from (a model of another provider, say) ends the run with that word. */
async function workToEnd(context: StepContext, input: LoopInput): Promise<RunResult | undefined> {
  try {
    return await runToEnd(context, input);
  } catch (error) {
    const message = clip(context.deps.redact(messageOf(error)));
    context.deps.log.error({ run: context.run.metadata.name, err: error }, 'the agent loop could not run');
    return {
      version: 1,
      reason: 'ModelError',
      message,
      text: message,
      reported: false,
      transcriptExcerpt: '',
    };
  }
}

/** The servers of the workflow are connected for this loop, and let go with it. */
async function runToEnd(context: StepContext, input: LoopInput): Promise<RunResult | undefined> {
  const servers = await connectedServers(context, input);
  try {
    return await loopToEnd(context, input, servers);
  } finally {
    await servers.close().catch((error: unknown) => {
      context.deps.log.warn({ run: context.run.metadata.name, err: error }, 'a tool server was not let go');
    });
  }
}

async function loopToEnd(
  context: StepContext,
  input: LoopInput,
  servers: OpenTools,
): Promise<RunResult | undefined> {
  const { deps, run, effective } = context;
  const { model, report } = input;
  const uid = run.metadata.uid ?? '';
  const { contents, spillCounter, notice } = await beginning(context, input);
  const registry = registryOf(context, [...input.tools, ...servers.tools], spillCounter);
  const names = new Set(registry.definitions().map(({ name }) => name));
  let fenced = false;
  const end = await runLoop({
    model,
    system: systemPrompt({
      workflow: input.prompt,
      toolNotes: [registry.notes(), ...servers.problems.map(({ note }) => note)].filter(Boolean).join('\n\n'),
      hasSandbox: registry.sandbox !== undefined,
      continuation: run.spec.sessionRef !== undefined,
    }),
    contents,
    tools: registry,
    limits: {
      maxIterations: effective.maxIterations,
      contextTokens: effective.contextTokens,
      ...(effective.budgetUsd === undefined ? {} : { budgetUsd: effective.budgetUsd }),
    },
    signal: input.signal,
    redact: deps.redact,
    prices: input.prices,
    sink: (event) => tell(context, event, names),
    ...(input.resume === undefined ? {} : { resume: input.resume }),
    ...(notice === undefined ? {} : { notice }),
    checkpoint: async (state) => {
      try {
        await input.promptKept;
        const checkpoint = await saveCheckpoint(deps.store, uid, state, input.signal);
        report({
          checkpoint,
          iterations: state.iteration,
          toolCalls: state.toolCalls,
          usage: countsOf(state.usage),
          costUSD: state.costUsd === undefined ? undefined : money(state.costUsd),
        });
      } catch (error) {
        fenced = error instanceof FencedError;
        if (fenced || input.signal.aborted) throw error;
        // A store that is down must not cost the answer: a restart would repeat more, that is all.
        deps.log.warn(
          { run: run.metadata.name, sequence: state.sequence, err: error },
          'checkpoint was not saved',
        );
        deps.events.record(
          run,
          'Warning',
          'CheckpointNotSaved',
          `${deps.store.location}: ${messageOf(error)}`,
        );
      }
    },
  });
  return fenced ? undefined : endedBy(resultOf(run, end, deps.redact), input.signal.reason);
}

/** The loop knows that it was ended, not what for. */
function endedBy(result: RunResult, why: unknown): RunResult {
  if (result.reason !== 'Cancelled' || !(why instanceof StopReason) || why.kind !== 'Superseded')
    return result;
  return { ...result, reason: 'Superseded', message: why.message, text: why.message };
}

function registryOf(context: StepContext, tools: readonly Tool[], spillCounter: number): ToolRegistry {
  const { deps, run, local } = context;
  const sandbox = local.sandboxes.get(run.metadata.uid ?? '');
  return createRegistry({
    tools,
    redact: deps.redact,
    spillCounter: createSpillCounter(spillCounter),
    ...(sandbox === undefined
      ? {}
      : { sandbox, replaceSandbox: (_, signal) => anotherSandbox(context, signal) }),
  });
}

function tell({ deps, local, run }: StepContext, event: LoopEvent, tools: ReadonlySet<string>): void {
  deps.log.debug({ run: run.metadata.name, event }, 'loop');
  // Another name is the model's own word.
  if (event.type === 'ToolStarted' && tools.has(event.name))
    calledTool(local, run.metadata.uid ?? '', event.name);
  if (event.type === 'ModelRetry')
    deps.events.record(run, 'Warning', 'ModelRetry', `Attempt ${event.attempt}: ${event.message}`);
}

function statusOf(progress: LoopProgress): Partial<AgentRunStatus> {
  const { checkpoint, iterations, toolCalls, usage, costUSD } = progress;
  return {
    ...(checkpoint === undefined ? {} : { checkpoint }),
    iterations,
    toolCalls,
    usage,
    ...(costUSD === undefined ? {} : { costUSD }),
  };
}

const executionOf = ({ local, run }: StepContext): Execution | undefined =>
  local.executions.get(run.metadata.uid ?? '');

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
