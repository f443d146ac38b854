import type { AgentRun, AgentRunStatus } from './agent-run.ts';

export type Approval = NonNullable<AgentRunStatus['approvals']>[number];

/** Most questions of one run: whoever answers reads each. */
export const APPROVALS_MAX = 10;
/** Longest `arguments` of one, in characters. */
export const APPROVAL_ARGUMENTS_MAX = 500;

/** Annotation of an AgentRun that answers one of its questions: `approve` or `deny`, then who and where. */
export const approvalAnnotation = (id: string): string => `approval.hummingbird.dev/${id}`;

export interface Verdict {
  readonly verdict: 'Approved' | 'Denied';
  /** Who says so; empty where nobody is named. */
  readonly by: string;
}

/** The answer to a question; undefined while there is none that can be understood. */
export function verdictOn({ metadata }: Pick<AgentRun, 'metadata'>, id: string): Verdict | undefined {
  const text = metadata.annotations?.[approvalAnnotation(id)] ?? '';
  const [, word, by = ''] = /^\s*(approve|deny|denied)d?\b\s*(?:by\s+)?(.*)$/is.exec(text) ?? [];
  if (word === undefined) return undefined;
  return {
    verdict: word.toLowerCase() === 'approve' ? 'Approved' : 'Denied',
    by: by
      .trim()
      .replace(/[^ -~]/g, '?')
      .slice(0, 100),
  };
}
