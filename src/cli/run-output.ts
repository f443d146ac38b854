import type { RunReason } from '../crds/reasons.ts';
import type { RunEnd } from './run.ts';

/**
 * Exit codes of `hummingbird run`, for scripts. 2 is for what people mend at the command line: flags,
 * configuration, environment, event.
 */
export const EXIT_CODES = {
  answered: 0,
  failed: 1,
  usage: 2,
  partial: 3,
  sandbox: 4,
  timeout: 5,
  /** 128 + SIGINT, as shells have it. */
  interrupted: 130,
} as const;

export function exitCodeOf({ reason, reported }: Pick<RunEnd, 'reason' | 'reported'>): number {
  if (reason === 'Succeeded') return EXIT_CODES.answered;
  if (reason === 'Cancelled') return EXIT_CODES.interrupted;
  if (reason === 'Timeout') return EXIT_CODES.timeout;
  if (reported) return EXIT_CODES.partial;
  return SANDBOX_REASONS.includes(reason) ? EXIT_CODES.sandbox : EXIT_CODES.failed;
}

const SANDBOX_REASONS: readonly RunReason[] = ['SandboxUnavailable', 'SandboxLost'];

/** For scripts: one object, on one line. Unknown cost is absent, never 0. */
export function renderJson(end: RunEnd): string {
  const { usage, costUsd, sandbox, note, savedTo } = end;
  return JSON.stringify({
    reason: end.reason,
    message: end.message,
    reported: end.reported,
    text: end.text,
    iterations: end.iterations,
    toolCalls: end.toolCalls,
    usage,
    costUSD: costUsd === undefined ? undefined : costUsd.toFixed(6).replace(/\.?0+$/, ''),
    sandbox,
    note,
    sessionId: end.sessionId,
    savedTo,
  });
}

/** The line after the report, on stderr. */
export function renderSummary(end: RunEnd): string {
  const { usage, costUsd, savedTo, note } = end;
  const facts = [
    `${end.iterations} model call${end.iterations === 1 ? '' : 's'}`,
    `${end.toolCalls} tool call${end.toolCalls === 1 ? '' : 's'}`,
    ...(usage === undefined ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
    ...(usage === undefined ? [] : [costUsd === undefined ? 'cost unknown' : `$${costUsd.toFixed(4)}`]),
    ...(note === undefined ? [] : [`note ${note.url}`]),
    ...(savedTo === undefined ? [] : [`session saved in ${savedTo}`]),
  ];
  const why = end.reason === 'Succeeded' ? '' : `: ${end.message}`;
  return `${end.reason}${why} (${facts.join(', ')})`;
}
