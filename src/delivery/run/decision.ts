import { z } from 'zod';
import type { Delivery } from '../deliver.ts';
import type { FileChange } from '../port.ts';
import { noteText, statusText } from '../tell/note-text.ts';

/** What was decided, kept before anything is written: another process acts on the same words and bytes. */
export const Decision = z.object({
  version: z.literal(1),
  kind: z.enum(['NoAction', 'Explained', 'Push', 'Escalate']),
  /** Head that was looked at. */
  headSha: z.string(),
  /** Markdown of the note. */
  text: z.string(),
  /** Of the commit status. */
  status: z.string(),
  /** Whether people are to be called by a label. */
  calls: z.boolean(),
  attempt: z.number().int(),
  files: z.array(z.object({ path: z.string(), base64: z.string() })),
});
export type Decision = Readonly<z.infer<typeof Decision>>;

export function decisionOf(delivery: Delivery, headSha: string, attempt: number): Decision {
  const { outcome } = delivery;
  return {
    version: 1,
    kind: outcome.kind,
    headSha,
    text: noteText(delivery),
    status: statusText(outcome),
    calls: outcome.kind === 'Escalate' || (outcome.kind === 'Explained' && outcome.look),
    attempt,
    files:
      outcome.kind === 'Push'
        ? outcome.files.map(({ path, bytes }) => ({ path, base64: Buffer.from(bytes).toString('base64') }))
        : [],
  };
}

/** Without a gate: what stands in the way was known before. */
export const escalationFor = (why: string, headSha: string, attempt: number): Decision => ({
  version: 1,
  kind: 'Escalate',
  headSha,
  text: `### Needs a person\n\n**${why}.**`,
  status: `needs a person: ${why}`.slice(0, 140),
  calls: true,
  attempt,
  files: [],
});

export const filesOf = ({ files }: Decision): readonly FileChange[] =>
  files.map(({ path, base64 }) => ({ path, bytes: Buffer.from(base64, 'base64') }));
