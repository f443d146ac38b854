import type { ToolDefinition } from '../models/port.ts';

export type ToolOutput =
  /** Inline when at most 4096 bytes, else spilled as text. */
  | { readonly kind: 'Text'; readonly text: string; readonly suffix?: string }
  /** A small structured answer; spilled as `.json` when over 4096 bytes. */
  | { readonly kind: 'Json'; readonly value: Readonly<Record<string, unknown>> }
  /** Unbounded; piped to the sandbox in constant memory. `suffix` with its dot: `.jsonl`, `.log`, `.tar.gz`. */
  | {
      readonly kind: 'Stream';
      readonly chunks: AsyncIterable<Uint8Array>;
      readonly suffix: string;
      readonly binary: boolean;
      /** Asked after the last chunk: what is missing, in one sentence, when the stream ended early. */
      readonly incomplete?: () => string | undefined;
      /** Asked after the last chunk: what the output is, in one sentence, when its bytes do not say it. */
      readonly note?: () => string | undefined;
    }
  | { readonly kind: 'Binary'; readonly bytes: Uint8Array }
  /** An expected refusal, for the model to act on: what was wrong, what is allowed. */
  | { readonly kind: 'Error'; readonly message: string };

export interface ToolContext {
  readonly signal: AbortSignal;
  /** Names the call within its run, the same when it is repeated after a takeover. Absent outside a loop. */
  readonly place?: string;
}

/**
 * One tool of the model. `definition.parameters` is derived from the same zod schema that `run` relies on;
 * the registry validates before it calls. Credentials are captured when the tool is made, never passed.
 */
export interface Tool {
  readonly definition: ToolDefinition;
  /** Returns the parsed arguments, or a message that tells the model what to mend. */
  parse(
    args: unknown,
  ): { readonly ok: true; readonly args: unknown } | { readonly ok: false; readonly message: string };
  run(args: unknown, context: ToolContext): Promise<ToolOutput>;
  /** Merged into every answer of this tool (inline, spilled, fetched). */
  readonly responseMetadata?: Readonly<Record<string, string>>;
  /** May run beside other such calls of the same turn. Default true for sources, false for sandbox_exec. */
  readonly concurrent?: boolean;
}
