import { type Clock, orAborted } from './clock.ts';
import type { ToolCall } from './models/port.ts';
import { type Redact, redactObject } from './redaction.ts';
import type { ToolContext } from './tools/port.ts';
import type { ToolExecution, ToolRegistry } from './tools/registry.ts';

/** Beyond this the calls of one answer are refused: an answer must not start unbounded work. */
export const MAX_CALLS_PER_TURN = 32;
/** Side by side at once. */
const MAX_CONCURRENT = 8;

export interface NumberedCall {
  /** Position in the model's answer. */
  readonly index: number;
  readonly call: ToolCall;
}

export interface CallOutcome extends NumberedCall {
  readonly execution: ToolExecution;
  /** The result as JSON. */
  readonly json: string;
  readonly durationMs: number;
}

/**
 * Splits the calls of one answer into groups that run one after the other. Neighbours that may run beside each
 * other share a group; a call that may not (a command in the sandbox) stands alone, since it may rely on what
 * the calls before it wrote.
 */
export function groupCalls(
  calls: readonly NumberedCall[],
  mayRunBeside: (call: ToolCall) => boolean,
): readonly (readonly NumberedCall[])[] {
  const groups: NumberedCall[][] = [];
  let open: NumberedCall[] | undefined;
  for (const numbered of calls) {
    if (!mayRunBeside(numbered.call)) {
      groups.push([numbered]);
      open = undefined;
    } else if (open && open.length < MAX_CONCURRENT) {
      open.push(numbered);
    } else {
      open = [numbered];
      groups.push(open);
    }
  }
  return groups;
}

/** Runs one group side by side; outcomes in the calls' order. Rejects only with the signal's reason. */
export async function runGroup(
  group: readonly NumberedCall[],
  context: {
    readonly tools: ToolRegistry;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    /** Number of the model's answer in the run. */
    readonly iteration: number;
    readonly redact: Redact;
    readonly onStart: (call: ToolCall) => void;
    readonly onFinish: (outcome: CallOutcome) => void;
  },
): Promise<readonly CallOutcome[]> {
  const { tools, clock, signal, redact } = context;
  return Promise.all(
    group.map(async ({ index, call }) => {
      context.onStart(call);
      const startedAt = clock.now();
      const place = `${context.iteration}.${index}`;
      const execution = await executeGuarded(tools, { index, call }, { signal, place });
      const result = redactObject(execution.result, redact);
      const outcome: CallOutcome = {
        index,
        call,
        execution: { ...execution, result },
        json: JSON.stringify(result),
        durationMs: clock.now() - startedAt,
      };
      context.onFinish(outcome);
      return outcome;
    }),
  );
}

async function executeGuarded(
  tools: ToolRegistry,
  { index, call }: NumberedCall,
  context: ToolContext,
): Promise<ToolExecution> {
  const { signal } = context;
  if (index >= MAX_CALLS_PER_TURN) {
    const error = `Not executed: more than ${MAX_CALLS_PER_TURN} calls in one answer. Call it again if you still need it.`;
    return { result: { error }, outcome: 'Error' };
  }
  try {
    return await orAborted(tools.execute(call, context), signal);
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    return { result: { error: `Tool ${call.name} failed: ${message}` }, outcome: 'Error' };
  }
}
