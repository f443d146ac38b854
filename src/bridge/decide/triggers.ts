import type { Skip, WorkflowView } from './decision.ts';
import { skip } from './decision.ts';
import type { SkipReason } from './reasons.ts';
import { couldAllow, evaluateTrigger, type Trigger, type TriggerSubject } from './rules.ts';

export type TriggerVerdict =
  | { readonly kind: 'Allowed'; readonly message: string }
  | (Skip & { readonly kind: 'Skip' });

type EventKind = 'Pipeline' | 'MergeRequest';

/** What the workflow itself says to an event, before anybody's access is looked at. `what` names the event. */
export function triggerVerdict(
  workflow: WorkflowView,
  event: EventKind,
  subject: TriggerSubject,
  what: string,
): TriggerVerdict {
  if (workflow.spec.suspend === true) return skip('Suspended', `${what}: the workflow is suspended`);
  const triggers = triggersOf(workflow, event);
  if (triggers.length === 0) return skip('NotTriggered', `${what}: the workflow has no ${event} trigger`);
  const verdicts = triggers.map((trigger) => evaluateTrigger(trigger, subject));
  const allowed = verdicts.find(({ kind }) => kind === 'Allowed');
  if (allowed !== undefined) return { kind: 'Allowed', message: allowed.message };
  const refused = verdicts.find(({ kind }) => kind === 'Invalid') ?? verdicts[0];
  const reason = refused?.kind === 'Invalid' ? 'InvalidRule' : refusal(subject);
  return skip(reason, `${what}: ${refused?.message}`);
}

/** Whether it could start a run if the right user were behind it: else nobody needs to be asked about users. */
export function couldStart(
  workflow: WorkflowView,
  event: EventKind,
  subject: Omit<TriggerSubject, 'user'>,
): boolean {
  return (
    workflow.spec.suspend !== true &&
    triggersOf(workflow, event).some((trigger) => couldAllow(trigger, subject))
  );
}

const triggersOf = ({ spec }: WorkflowView, event: EventKind): readonly Trigger[] =>
  spec.triggers?.filter((trigger) => trigger.event === event) ?? [];

/** Statuses in which GitLab leaves a pipeline. */
const FINISHED = new Set(['success', 'failed', 'canceled', 'skipped']);

/** GitLab tells every step of a pipeline; refusing the steps on the way is no news to anybody. */
const refusal = ({ status }: TriggerSubject): SkipReason =>
  status === undefined || FINISHED.has(status) ? 'SkippedRule' : 'PipelineNotFinished';
