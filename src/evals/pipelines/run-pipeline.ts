import type { Clock } from '../../agent/clock.ts';
import { type LoopResult, runLoop } from '../../agent/loop.ts';
import type { Model } from '../../agent/models/port.ts';
import { systemPrompt } from '../../agent/prompts.ts';
import { createRegistry } from '../../agent/tools/registry.ts';
import type { PipelineCase } from './pipeline-case.ts';
import { SCOPE } from './world/places.ts';
import { pipelineTools } from './world/tools.ts';

export interface PipelineMeans {
  /** The workflow's prompt as it is shipped (`loadBuiltinPrompt('analyze-failures')`). */
  readonly workflow: string;
  /** Called once for each case. */
  readonly modelFor: (one: PipelineCase) => Model;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
  /** The loop's own; default the system's. */
  readonly clock?: Clock;
}

/** What became of a case, before anybody judges it. */
export interface PipelineRun {
  readonly result: LoopResult;
  /** Names of the tools that were called, in their order, with what they answered as JSON. */
  readonly read: readonly { readonly tool: string; readonly answer: string }[];
  /** Requests that left the tools and that the case has no answer for. */
  readonly strays: readonly string[];
  readonly seconds: number;
}

/** Of the workflows' default model; the context is what a 30-turn analysis may grow to. */
const CONTEXT_TOKENS = 60_000;

/** Takes a case through the loop, the base prompt, the workflow and the tools that are shipped, without a sandbox. */
export async function runPipeline(
  one: PipelineCase,
  { workflow, modelFor, now, clock }: PipelineMeans,
  signal: AbortSignal = new AbortController().signal,
): Promise<PipelineRun> {
  const { tools, strays } = pipelineTools(one);
  const registry = createRegistry({ tools });
  const model = modelFor(one);
  const started = now();
  const result = await runLoop({
    model,
    system: systemPrompt({ workflow, toolNotes: registry.notes(), hasSandbox: false, continuation: false }),
    contents: [model.makeUserContent(JSON.stringify(eventOf()))],
    tools: registry,
    limits: { maxIterations: one.want.maxIterations, contextTokens: CONTEXT_TOKENS },
    signal,
    ...(clock && { clock }),
  });
  const read = result.transcript.flatMap((entry) =>
    entry.kind === 'tool_result' ? [{ tool: entry.name, answer: entry.result }] : [],
  );
  return { result, read, strays: [...strays], seconds: (now() - started) / 1000 };
}

const eventOf = () => ({ project: SCOPE.project, iid: SCOPE.iid, sha: SCOPE.sha });
