import type { Approval } from '../../crds/approval.ts';
import type { RunReason } from '../../crds/reasons.ts';

/** What the merge request shows while the run works. */
export const placeholderText = (workflow: string): string =>
  `Running the ${workflow} workflow. This note will be replaced by its result.`;

/** What it shows instead once there is something to tell. No word of the model's. */
export function progressText(
  workflow: string,
  progress: {
    readonly iterations: number;
    readonly toolCalls: number;
    /** Absent: unknown. */
    readonly costUSD?: string;
    /** The newest last. */
    readonly tools: readonly string[];
    readonly at: Date;
  },
): string {
  const { iterations, toolCalls, costUSD, tools, at } = progress;
  const cost = costUSD === undefined ? '' : `, $${costUSD}`;
  const lately = tools.length === 0 ? '' : `, lately ${tools.map((name) => `\`${name}\``).join(', ')}`;
  const time = at.toISOString().slice(11, 16);
  return `${placeholderText(workflow)}\n\n_At ${time} UTC: ${counted(iterations, 'model call')}${cost}, ${counted(toolCalls, 'tool call')}${lately}._`;
}

/** What the note adds while calls wait for somebody's answer; empty when none does. The arguments are the model's. */
export function approvalText(
  waiting: readonly Pick<Approval, 'id' | 'tool' | 'arguments'>[],
  commandPrefix: string,
): string {
  return waiting
    .map(
      ({ id, tool, arguments: args }) =>
        `**A call of \`${tool}\` waits for approval.** Its arguments:\n\n${fenced(args)}\n\nA Developer of this project lets it be made with \`${commandPrefix} approve ${id}\`, or refuses it with \`${commandPrefix} deny ${id}\`. The run's time goes on meanwhile.`,
    )
    .join('\n\n');
}

/** In a fence that nothing inside ends. */
function fenced(text: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}json\n${text}\n${fence}`;
}

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

const REPLY_HINT = 'Reply to this note to ask more: the conversation goes on from here.';

/** The answer, with the run's transcript folded below it. */
export function resultText(parts: {
  readonly answer: string;
  readonly reason: RunReason;
  readonly message: string;
  readonly model: string;
  readonly transcript: string;
  /** Whether a reply to the note goes on with the conversation; said in the first note of one only. */
  readonly invitesReply: boolean;
}): string {
  const partial = parts.reason === 'Succeeded' ? '' : `_This result is partial: ${parts.message}_\n\n`;
  const invitation = parts.invitesReply ? `_${REPLY_HINT}_\n\n` : '';
  return `${partial}${parts.answer}${folded(parts.transcript)}\n\n${invitation}_Model: ${parts.model}_`;
}

/** The run ended well, but what the model wrote did not survive. */
const LOST = 'Hummingbird analysis ended, but its text could not be kept.';

const HEADLINES: Partial<Record<RunReason, string>> = {
  Succeeded: LOST,
  Partial: LOST,
  Cancelled: 'Hummingbird analysis was cancelled.',
  Superseded: 'Hummingbird analysis was superseded by a newer push.',
  BudgetExceeded: 'Hummingbird analysis ended at its budget, before there was a report.',
};

/** What replaces the placeholder when there is no answer: how it ended, why, and what was reached. */
export function failureText(reason: RunReason, text: string, transcript = ''): string {
  const headline = HEADLINES[reason] ?? 'Hummingbird analysis failed.';
  return `${headline}\n\nReason: ${reason}. ${text}${folded(transcript)}`;
}

const folded = (transcript: string): string =>
  transcript === ''
    ? ''
    : `\n\n<details>\n<summary>Agent transcript</summary>\n\n${transcript}\n\n</details>`;

/** The answer to a reply whose conversation is not kept any more. */
export const expiredText = (workflow: string): string =>
  `Thank you for the reply. The conversation that it belongs to has expired: what was said in it, and the files it worked with, are not kept any more, so it cannot be continued.\n\nTo have this merge request looked at again, start the ${workflow} workflow anew; its report opens a new conversation.`;

/** Said once on a merge request. */
export const limitText = (workflow: string, limit: number): string =>
  `The ${workflow} workflow has run ${limit} times on this merge request by itself and will not start by itself any more. A command or a reply still starts it.`;
