import type { Answer, Ask } from '../../delivery/port.ts';
import type { Edit, Verdict } from '../../delivery/verdict.ts';
import type { DeliveryCase } from '../delivery-case.ts';
import { wantedEdits } from '../score.ts';
import { evalRepository } from '../world/repository.ts';
import { shownBlock } from './shown.ts';

/** Answers as the case says is right: gets full marks, or the harness is wrong. */
export const perfectAsk = (one: DeliveryCase): Ask => {
  const repository = evalRepository(one);
  return async ({ name, user }) =>
    name === 'verdict'
      ? answered(perfectVerdict(one, wantedEdits(one, { repository }).map(rightEdit)))
      : answered({ document: perfectDocument(one, user), notes: 'Moved as the schema says.' });
};

export const answered = (value: unknown): Answer => ({ kind: 'Answered', value });

export function perfectVerdict({ subject, want }: DeliveryCase, edits: readonly Edit[]): Verdict {
  return {
    classification: want.class,
    summary: `${subject}.`,
    reasoning:
      want.mustMention.length === 0
        ? 'Nothing else is to be done.'
        : `To look at: ${want.mustMention.join(', ')}.`,
    edits: [...edits],
    escalationReason: want.class === 'escalate' ? 'needs a decision' : '',
  };
}

export const rightEdit = (edit: Omit<Edit, 'rationale'>): Edit => ({
  ...edit,
  rationale: 'It keeps what the team had before the bump.',
});

/** Where none is right, what was shown, unchanged: as the prompts want it. */
export function perfectDocument({ want }: DeliveryCase, user: string): string {
  return want.document ?? shownBlock(user, 'The document') ?? shownBlock(user, 'The values') ?? '';
}
