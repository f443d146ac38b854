import { endAfterError, type LoopResult, resultOf } from './loop-ending.ts';
import type { LoopEvent } from './loop-events.ts';
import { type LoopOptions, note, outlookOf, type Run, save, startRun } from './loop-run.ts';
import type { ModelResponse, ToolCall } from './models/port.ts';
import { callCostUsd } from './pricing.ts';
import { ephemeralText } from './prompts.ts';
import { generateWithRetry } from './retry.ts';
import { nextStep, type Outlook, type Step } from './stop-rules.ts';
import { type CallOutcome, groupCalls, runGroup } from './tool-turn.ts';
import { addUsage } from './usage.ts';
import { type Ending, judge } from './verdict.ts';

export type { Checkpoint } from './checkpoint.ts';
export type { LoopResult } from './loop-ending.ts';
export type { LoopEvent, LoopSink } from './loop-events.ts';
export type { LoopOptions } from './loop-run.ts';

/**
 * Asks the model and runs its tools until it answers or a rule ends it. Never rejects for what happens on the
 * way: failures come back as a result that holds what is known. Throws only for a checkpoint it cannot read.
 */
export async function runLoop(options: LoopOptions): Promise<LoopResult> {
  const run = startRun(options);
  if (run.state.ending) return resultOf(run, run.state.ending);
  try {
    if (run.state.pending) await runPendingCalls(run);
    for (;;) {
      const outlook = outlookOf(run);
      const step = nextStep(outlook);
      if (step.level === 'Stop') return await end(run, { kind: 'NoAnswer', rule: step.rule, text: '' });

      const answer = await ask(run, step, outlook);
      const lastIteration = run.state.iteration >= run.limits.maxIterations;
      const verdict = judge(answer, { step, emptyAnswers: run.state.emptyAnswers, lastIteration });
      run.state.nudge = undefined;

      switch (verdict.kind) {
        case 'CallTools':
          run.state.emptyAnswers = 0;
          keep(run, answer);
          run.state.pending = { calls: [...answer.toolCalls], results: [] };
          await save(run);
          await runPendingCalls(run);
          break;
        case 'RefuseCalls':
          keep(run, answer);
          refuseCalls(run, answer.toolCalls, verdict.error);
          if (verdict.ending) return await end(run, verdict.ending);
          await save(run);
          break;
        case 'AskAgain':
          run.state.emptyAnswers += 1;
          run.state.nudge = verdict.nudge;
          await save(run);
          break;
        case 'End':
          if (verdict.ending.text !== '') keep(run, answer);
          return await end(run, verdict.ending);
        default:
          return verdict satisfies never;
      }
    }
  } catch (error) {
    return endAfterError(run, error);
  }
}

async function ask(run: Run, step: Step, outlook: Outlook): Promise<ModelResponse> {
  const { state, model, signal, clock, retry } = run;
  const { iteration } = outlook;
  const ephemeral =
    [run.notice, ephemeralText(step, outlook, state.nudge)].filter(Boolean).join('\n\n') || undefined;
  run.notice = undefined;
  if (ephemeral) note(run, { kind: 'warning', text: ephemeral }, iteration);
  run.emit({ type: 'IterationStarted', iteration, level: step.level, ...(ephemeral && { ephemeral }) });

  const sentEntries = state.contents.length;
  const answer = await generateWithRetry(
    model,
    {
      system: run.system,
      contents: state.contents,
      tools: step.level === 'Hard' ? [] : run.tools.definitions(),
      signal,
      ...(ephemeral && { ephemeral }),
    },
    {
      policy: retry,
      clock,
      onRetry: (notice) => {
        note(
          run,
          { kind: 'error', text: `${notice.message} Trying again in ${notice.delayMs / 1000} s.` },
          iteration,
        );
        run.emit({ type: 'ModelRetry', iteration, ...notice, message: run.redact(notice.message) });
      },
    },
  );
  state.sentEntries = sentEntries;
  state.iteration = iteration;
  account(run, answer);
  return answer;
}

function account(run: Run, answer: ModelResponse): void {
  const { state, model, prices } = run;
  const costUsd = callCostUsd(model.name, answer.usage, prices);
  state.usage = addUsage(state.usage, answer.usage);
  state.lastInputTokens = answer.usage.inputTokens;
  // One call of unknown cost makes the sum unknown.
  state.costUsd = costUsd === undefined || state.costUsd === undefined ? undefined : state.costUsd + costUsd;

  const { usage, finishReason } = answer;
  note(run, { kind: 'model_call', usage, finishReason, ...(costUsd !== undefined && { costUsd }) });
  if (answer.text.trim() !== '') note(run, { kind: 'model_text', text: answer.text });
  run.emit({
    type: 'ModelAnswered',
    iteration: state.iteration,
    finishReason,
    toolCalls: answer.toolCalls.length,
    usage,
    totalUsage: state.usage,
    ...(state.costUsd !== undefined && { costUsd: state.costUsd }),
  });
}

/** Only what has content: no provider takes an empty turn back. */
function keep({ state, redact }: Run, answer: ModelResponse): void {
  if (answer.content !== undefined) state.contents.push(answer.content);
  if (answer.text.trim() !== '') state.interimText = redact(answer.text);
}

async function runPendingCalls(run: Run): Promise<void> {
  const { state, tools, clock, signal, redact } = run;
  const pending = state.pending;
  if (!pending) return;
  const answered = new Set(pending.results.map(({ index }) => index));
  const open = pending.calls
    .map((call, index) => ({ index, call }))
    .filter(({ index }) => !answered.has(index));
  const groups = groupCalls(open, (call) => tools.mayRunBeside(call));
  for (const [number, group] of groups.entries()) {
    const outcomes = await runGroup(group, {
      tools,
      clock,
      signal,
      redact,
      iteration: state.iteration,
      onStart: ({ id, name }) => run.emit({ type: 'ToolStarted', iteration: state.iteration, id, name }),
      onFinish: (outcome) => run.emit(finishedEvent(state.iteration, outcome)),
    });
    for (const outcome of outcomes) recordOutcome(run, outcome);
    pending.results.push(...outcomes.map(({ index, execution }) => ({ index, result: execution.result })));
    if (number < groups.length - 1) await save(run);
  }
  const resultOfCall = new Map(pending.results.map(({ index, result }) => [index, result]));
  const results = pending.calls.map((call, index) => ({ call, result: resultOfCall.get(index) ?? {} }));
  state.contents.push(...run.model.makeToolResponses(results));
  state.pending = undefined;
  await save(run);
}

function finishedEvent(iteration: number, { call, execution, json, durationMs }: CallOutcome): LoopEvent {
  const resultBytes = Buffer.byteLength(json);
  const { id, name } = call;
  return { type: 'ToolFinished', iteration, id, name, outcome: execution.outcome, durationMs, resultBytes };
}

function recordOutcome(run: Run, { call, execution, json }: CallOutcome): void {
  run.state.toolCalls += 1;
  const { id, name } = call;
  note(run, { kind: 'tool_call', id, name, args: call.rawArguments });
  note(run, { kind: 'tool_result', id, name, result: json, ok: execution.outcome === 'Ok' });
}

/** Every call gets an answer, also one that was not executed: providers refuse a history with open calls. */
function refuseCalls(run: Run, calls: readonly ToolCall[], error: string): void {
  const results = calls.map((call) => ({ call, result: { error } }));
  run.state.contents.push(...run.model.makeToolResponses(results));
  for (const { id, name, rawArguments } of calls) {
    note(run, { kind: 'tool_call', id, name, args: rawArguments });
    note(run, { kind: 'tool_result', id, name, result: JSON.stringify({ error }), ok: false });
  }
}

/** The ending is checkpointed too, so that a resumed run does not buy its report twice. */
async function end(run: Run, ending: Ending): Promise<LoopResult> {
  run.state.ending = { ...ending, text: run.redact(ending.text) };
  await save(run);
  return resultOf(run, run.state.ending);
}
