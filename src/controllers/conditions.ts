import type { Condition } from '../crds/meta.ts';
import { clip } from '../crds/shapes.ts';

export interface ConditionChange<Type extends string = string> {
  readonly type: Type;
  readonly status: Condition['status'];
  readonly reason: string;
  readonly message: string;
}

/** The changed condition; `lastTransitionTime` moves only when its status does, as metav1 asks. */
export function changedCondition(
  before: readonly Condition[] | undefined,
  change: ConditionChange,
  context: { readonly now: Date; readonly generation?: number | undefined },
): Condition {
  const known = conditionOf(before, change.type);
  return {
    type: change.type,
    status: change.status,
    reason: change.reason,
    message: clip(change.message),
    lastTransitionTime:
      known?.status === change.status ? known.lastTransitionTime : context.now.toISOString(),
    ...(context.generation === undefined ? {} : { observedGeneration: context.generation }),
  };
}

export function conditionOf(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export const isTrue = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  conditionOf(conditions, type)?.status === 'True';
