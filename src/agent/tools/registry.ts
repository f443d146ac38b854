import { randomBytes } from 'node:crypto';
import { type Sandbox, SandboxLostError, SCRATCH } from '../../sandbox/port.ts';
import type { ToolCall, ToolDefinition } from '../models/port.ts';
import { type Redact, redactNothing } from '../redaction.ts';
import { type Delivery, deliver, deliverTo, type Result } from './deliver.ts';
import {
  type FetchRequest,
  fetchBatch,
  fetchBatchDefinition,
  fetchBatchParameters,
  fetchDefinition,
  fetchParameters,
  pathInScratch,
} from './fetch.ts';
import type { Parsed } from './parameters.ts';
import type { Tool, ToolContext, ToolOutput } from './port.ts';
import { sandboxExec, sandboxExecDefinition, sandboxExecParameters } from './sandbox-exec.ts';
import { createSpillCounter, type SpillCounter } from './spill.ts';

export interface ToolExecution {
  /** A JSON object for the model. */
  readonly result: Result;
  readonly outcome: 'Ok' | 'Error' | 'TimedOut' | 'SandboxLost';
}

/** The tools of one run. Owns the sandbox: the loop sees only calls and results. */
export interface ToolRegistry {
  definitions(): readonly ToolDefinition[];
  /** Section of the system prompt with what the tools' authors know; empty when there is none. */
  notes(): string;
  /** Never throws, except with the signal's reason: whatever goes wrong is told to the model. */
  execute(call: ToolCall, context: ToolContext): Promise<ToolExecution>;
  /** Whether the call may run beside others of the same turn. */
  mayRunBeside(call: ToolCall): boolean;
  /** For checkpoints, so that a resumed run does not write over its own files. */
  readonly spillCounter: SpillCounter;
  /** The sandbox in use now: another one after a loss. */
  readonly sandbox: Sandbox | undefined;
}

export interface RegistryOptions {
  readonly tools: readonly Tool[];
  /** Without one the three sandbox tools are absent and large output is cut to a preview. */
  readonly sandbox?: Sandbox;
  readonly spillCounter?: SpillCounter;
  readonly redact?: Redact;
  readonly execTimeoutMs?: number;
  /** Of any file that a command writes, its output included; a multiple of 512. */
  readonly maxFileBytes?: number;
  /** Called once per lost sandbox. A new, started one, or undefined: then the run goes on without. */
  readonly replaceSandbox?: (lost: Sandbox, signal: AbortSignal) => Promise<Sandbox | undefined>;
  readonly nonce?: () => string;
}

/** Throws when two tools have the same name. */
export function createRegistry(options: RegistryOptions): ToolRegistry {
  const counter = options.spillCounter ?? createSpillCounter();
  const redact = options.redact ?? redactNothing;
  const nonce = options.nonce ?? (() => randomBytes(12).toString('hex'));
  const sources = new Map(options.tools.map((tool) => [tool.definition.name, tool]));
  const names = [...BUILT_IN_TOOLS, ...options.tools.map((tool) => tool.definition.name)];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`Two tools are named ${twice}: register each name once.`);

  let sandbox = options.sandbox;
  let replacing: { readonly lost: Sandbox; readonly done: Promise<Sandbox | undefined> } | undefined;

  async function execute(call: ToolCall, context: ToolContext): Promise<ToolExecution> {
    const { signal } = context;
    const used = sandbox;
    try {
      signal.throwIfAborted();
      const result = await dispatch(call, used, context);
      const outcome = 'timed_out' in result ? 'TimedOut' : 'error' in result ? 'Error' : 'Ok';
      return { result, outcome };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SandboxLostError && used) return afterLoss(used, error, signal);
      return { result: { error: `Tool ${call.name} failed: ${messageOf(error)}` }, outcome: 'Error' };
    }
  }

  async function dispatch(call: ToolCall, used: Sandbox | undefined, context: ToolContext): Promise<Result> {
    const { signal } = context;
    const args = call.arguments;
    if (args === undefined) return { error: notAnObject(call) };
    if (used && call.name === 'sandbox_exec') {
      return withArguments(call, sandboxExecParameters.parse(args), async ({ command }) => {
        const { execTimeoutMs: timeoutMs, maxFileBytes } = options;
        const ran = await sandboxExec(command, {
          ...{ sandbox: used, counter, redact, signal, nonce },
          ...(timeoutMs !== undefined && { timeoutMs }),
          ...(maxFileBytes !== undefined && { maxFileBytes }),
        });
        return ran.result;
      });
    }
    if (used && call.name === 'fetch_to_sandbox') {
      return withArguments(call, fetchParameters.parse(args), (request) => fetchOne(request, used, context));
    }
    if (used && call.name === 'fetch_batch_to_sandbox') {
      return withArguments(call, fetchBatchParameters.parse(args), ({ requests }) =>
        fetchBatch(requests, (request, index) => guardedFetch(request, used, within(context, index))),
      );
    }
    const tool = sources.get(call.name);
    if (!tool) return { error: unknownTool(call.name) };
    return withArguments(call, tool.parse(args), async (parsed) =>
      deliver(await tool.run(parsed, context), deliveryOf(tool, used, signal)),
    );
  }

  async function fetchOne(request: FetchRequest, used: Sandbox, context: ToolContext): Promise<Result> {
    const tool = sources.get(request.tool);
    if (!tool) return { error: unknownTool(request.tool, 'Only data source tools can be fetched.') };
    const path = pathInScratch(request.path);
    if (path === undefined) {
      return { error: `The path ${request.path} is not below ${SCRATCH}. Choose one that is.` };
    }
    const parsed = tool.parse(request.args);
    if (!parsed.ok) return { error: wrongArguments(request.tool, parsed.message) };
    const output: ToolOutput = await tool.run(parsed.args, context);
    return deliverTo(path, output, { ...deliveryOf(tool, used, context.signal), sandbox: used });
  }

  async function guardedFetch(request: FetchRequest, used: Sandbox, context: ToolContext): Promise<Result> {
    try {
      return await fetchOne(request, used, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof SandboxLostError) throw error;
      return { error: `Tool ${request.tool} failed: ${messageOf(error)}` };
    }
  }

  /** Calls that ran side by side in the lost sandbox share one replacement. */
  async function afterLoss(
    lost: Sandbox,
    error: SandboxLostError,
    signal: AbortSignal,
  ): Promise<ToolExecution> {
    if (sandbox === lost) {
      if (replacing?.lost !== lost) {
        const done = options.replaceSandbox?.(lost, signal) ?? Promise.resolve(undefined);
        replacing = { lost, done: done.catch(() => undefined) };
      }
      const replacement = await replacing.done;
      signal.throwIfAborted();
      if (sandbox === lost) sandbox = replacement;
    }
    const now = sandbox
      ? `A fresh, empty sandbox took its place: all files in ${SCRATCH} are gone. Fetch what you still need and repeat the call. If the command used much memory or disk, or many processes, make it use less.`
      : 'No other sandbox could be had. Go on with what you know and say in your answer what is missing.';
    const result = { error: `The sandbox was lost (${error.message}).`, sandbox_lost: true, note: now };
    return { result, outcome: 'SandboxLost' };
  }

  function deliveryOf(tool: Tool, used: Sandbox | undefined, signal: AbortSignal): Delivery {
    const metadata = tool.responseMetadata ?? {};
    return { toolName: tool.definition.name, metadata, sandbox: used, counter, redact, signal };
  }

  function unknownTool(name: string, hint = ''): string {
    const known = hint ? [...sources.keys()] : definitions().map((definition) => definition.name);
    return [`There is no tool ${name}.`, hint, `Use one of: ${known.join(', ') || '(none)'}.`]
      .filter(Boolean)
      .join(' ');
  }

  function definitions(): readonly ToolDefinition[] {
    const builtIn = sandbox ? [sandboxExecDefinition, fetchDefinition, fetchBatchDefinition] : [];
    return [...builtIn, ...options.tools.map((tool) => tool.definition)];
  }

  return {
    definitions,
    notes: () => notesOf(options.tools),
    execute,
    mayRunBeside: (call) => sources.has(call.name) && sources.get(call.name)?.concurrent !== false,
    spillCounter: counter,
    get sandbox() {
      return sandbox;
    },
  };
}

/** The place of one request of a batch. */
const within = ({ signal, place }: ToolContext, index: number): ToolContext => ({
  signal,
  ...(place !== undefined && { place: `${place}.${index}` }),
});

/** Names that no other tool may have. */
export const BUILT_IN_TOOLS = ['sandbox_exec', 'fetch_to_sandbox', 'fetch_batch_to_sandbox'] as const;

async function withArguments<T>(
  call: ToolCall,
  parsed: Parsed<T>,
  run: (args: T) => Promise<Result>,
): Promise<Result> {
  return parsed.ok ? run(parsed.args) : { error: wrongArguments(call.name, parsed.message) };
}

function wrongArguments(name: string, message: string): string {
  return `Wrong arguments for ${name}: ${message}. Mend them and call again.`;
}

function notAnObject({ name, rawArguments }: ToolCall): string {
  const shown = rawArguments.length > 200 ? `${rawArguments.slice(0, 200).toWellFormed()}…` : rawArguments;
  return `The arguments of ${name} were not a JSON object: ${shown}`;
}

/** Tools of one source may share a text: it is shown once. */
function notesOf(tools: readonly Tool[]): string {
  const notes = new Set(tools.flatMap(({ definition }) => definition.notes?.trim() || []));
  return notes.size === 0 ? '' : ['## Data Source Notes', ...notes].join('\n\n');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
