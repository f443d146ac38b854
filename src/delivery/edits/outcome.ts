import { ALL_LEVERS, type Levers } from '../levers.ts';
import type { FileChange } from '../port.ts';
import type { AppliedEdit, ApplyResult, RejectedEdit } from './apply.ts';

export type EditOutcome =
  | {
      readonly kind: 'Push';
      readonly files: readonly FileChange[];
      readonly applied: readonly AppliedEdit[];
      readonly rejected: readonly RejectedEdit[];
    }
  /** Nothing is pushed. Every refusal is told, and what would have been sound without them. */
  | {
      readonly kind: 'Escalate';
      readonly rejected: readonly RejectedEdit[];
      readonly withheld: readonly AppliedEdit[];
    };

/** Lever 4: a mechanical verdict of which nothing was applied asks a person, it is no success. */
export function outcomeOf(
  { files, applied, rejected, withheld }: ApplyResult,
  { emptyEscalates }: Levers = ALL_LEVERS,
): EditOutcome {
  if (applied.length === 0 && emptyEscalates) return { kind: 'Escalate', rejected, withheld };
  return { kind: 'Push', files, applied, rejected };
}
