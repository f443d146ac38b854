import type { Condition } from '../../../crds/meta.ts';
import { conditionOf } from '../../conditions.ts';
import type { StepContext, StepResult } from '../step.ts';
import { postPlaceholder } from './note.ts';
import { claimSandbox } from './sandbox.ts';

/**
 * Posts the placeholder and claims the sandbox side by side, recorded by one write: their intents are in the status
 * since the admission, and neither needs the other. When one of them fails, what the other did is recorded, and the
 * one that failed comes again as a step of its own.
 */
export async function prepare(context: StepContext): Promise<StepResult> {
  const [noted, claimed] = await Promise.allSettled([postPlaceholder(context), claimSandbox(context)]);
  if (noted.status === 'fulfilled' && claimed.status === 'fulfilled')
    return bothOf(noted.value, claimed.value);
  if (noted.status === 'fulfilled') return noted.value;
  if (claimed.status === 'fulfilled' && claimed.value.status !== undefined) return recorded(claimed.value);
  throw noted.reason;
}

/** The next step follows at once: it is for the one that failed to say when. */
const recorded = ({ afterMs: _later, ...result }: StepResult): StepResult => result;

/** A run that has ended by one of them ends with that word, whatever became of the other. */
function bothOf(noted: StepResult, claimed: StepResult): StepResult {
  if (noted.status === undefined) return claimed;
  if (claimed.status === undefined) return noted;
  const endedByClaim = noted.status.outcome === undefined && claimed.status.outcome !== undefined;
  const [status, beside, type] = endedByClaim
    ? ([claimed.status, noted.status, 'NotePosted'] as const)
    : ([noted.status, claimed.status, 'SandboxReady'] as const);
  const told = conditionOf(beside.conditions, type);
  const { note } = noted.status;
  const { sandbox } = claimed.status;
  return {
    status: {
      ...status,
      ...(note === undefined ? {} : { note }),
      ...(sandbox === undefined ? {} : { sandbox }),
      ...(told === undefined ? {} : { conditions: replaced(status.conditions, told) }),
    },
  };
}

/** In its place, or behind the others. */
function replaced(conditions: readonly Condition[] = [], told: Condition): readonly Condition[] {
  const at = conditions.findIndex(({ type }) => type === told.type);
  return at < 0 ? [...conditions, told] : conditions.with(at, told);
}
