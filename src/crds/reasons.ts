/** Why an AgentRun ended as it did: `reason` of its `Succeeded` condition. */
export const RUN_REASONS = [
  'Succeeded',
  'Partial',
  'Timeout',
  'Cancelled',
  'Superseded',
  'SkippedDraft',
  'SkippedRule',
  'SkippedDuplicate',
  'RateLimited',
  'AccessDenied',
  'BudgetExceeded',
  'ModelError',
  'ModelNoAnswer',
  'SandboxLost',
  'SandboxUnavailable',
  'PolicyRefused',
  'InvalidSpec',
] as const;
export type RunReason = (typeof RUN_REASONS)[number];

/** The last four are terminal: the API server refuses to let a run leave them. */
export const RUN_PHASES = [
  'Pending',
  'Claiming',
  'Running',
  'Finishing',
  'Succeeded',
  'Failed',
  'Cancelled',
  'Skipped',
] as const;
export type RunPhase = (typeof RUN_PHASES)[number];

export const TERMINAL_PHASES = [
  'Succeeded',
  'Failed',
  'Cancelled',
  'Skipped',
] as const satisfies readonly RunPhase[];
export type TerminalPhase = (typeof TERMINAL_PHASES)[number];

export function isTerminal(phase: RunPhase | undefined): phase is TerminalPhase {
  return TERMINAL_PHASES.some((terminal) => terminal === phase);
}

/** Condition types of an AgentRun. `Succeeded` is the one to wait for; the others tell which steps were done. */
export const RUN_CONDITIONS = [
  'Succeeded',
  'Admitted',
  'SandboxReady',
  'NotePosted',
  'SessionSaved',
] as const;
export type RunConditionType = (typeof RUN_CONDITIONS)[number];
