import { isTitleRegex } from '../../crds/title-pattern.ts';
import { matchesGlob } from './glob.ts';
import { matchesTitleRegex } from './title-regex.ts';

/** One rule of a trigger: every condition that is present must hold. Each is a list of which one entry must match. */
export interface TriggerRule {
  readonly action: 'Allow' | 'Deny';
  readonly status?: readonly string[] | undefined;
  readonly user?: readonly string[] | undefined;
  /** Against the branch that the merge request goes to. */
  readonly branch?: readonly string[] | undefined;
  /** A glob, or a regular expression written `/…/`. */
  readonly title?: readonly string[] | undefined;
}

export interface Trigger {
  readonly event: string;
  readonly rules?: readonly TriggerRule[] | undefined;
  readonly ignoreUsers?: readonly string[] | undefined;
  /** Against the branch that the merge request goes to. */
  readonly ignoreBranches?: readonly string[] | undefined;
}

/** What rules look at. */
export interface TriggerSubject {
  /** Of the pipeline; undefined for events that have none. */
  readonly status?: string;
  readonly user: string | undefined;
  readonly targetBranch: string;
  readonly title: string;
}

export type Verdict =
  | { readonly kind: 'Allowed'; readonly message: string }
  | { readonly kind: 'Denied'; readonly message: string }
  /** The trigger itself is wrong: nothing runs until its owner mends it. */
  | { readonly kind: 'Invalid'; readonly message: string };

/**
 * The ignore lists deny first; then the first rule whose conditions all hold decides; with rules of which none
 * matches it is denied; without rules a failed pipeline is allowed (and any event that has no status).
 */
export function evaluateTrigger(trigger: Trigger, subject: TriggerSubject): Verdict {
  const ignored = ignoredBy(trigger, subject);
  if (ignored) return { kind: 'Denied', message: ignored };
  const rules = trigger.rules ?? [];
  if (rules.length === 0) return byDefault(subject);
  for (const [index, rule] of rules.entries()) {
    const outcome = matchesRule(rule, subject);
    if (!outcome.ok) return { kind: 'Invalid', message: `rules[${index}].title: ${outcome.message}` };
    if (!outcome.matches) continue;
    return {
      kind: rule.action === 'Allow' ? 'Allowed' : 'Denied',
      message: `rules[${index}] says ${rule.action}`,
    };
  }
  return { kind: 'Denied', message: `none of the ${rules.length} rules matches` };
}

/**
 * Whether some user could be allowed: true when only the user, or a rule that cannot be used, stands between the
 * event and a run.
 */
export function couldAllow(trigger: Trigger, subject: Omit<TriggerSubject, 'user'>): boolean {
  const anybody = { ...subject, user: undefined };
  if (ignoredBy(trigger, anybody) !== undefined) return false;
  const rules = trigger.rules ?? [];
  if (rules.length === 0) return byDefault(anybody).kind === 'Allowed';
  for (const { user, ...rule } of rules) {
    const outcome = matchesRule(rule, anybody);
    if (!outcome.ok) return true;
    if (outcome.matches && rule.action === 'Allow') return true;
    if (outcome.matches && user === undefined) return false;
  }
  return false;
}

function ignoredBy(trigger: Trigger, subject: TriggerSubject): string | undefined {
  const user = subject.user;
  const userPattern =
    user === undefined ? undefined : trigger.ignoreUsers?.find((pattern) => matchesGlob(pattern, user));
  if (userPattern !== undefined) return `ignoreUsers: ${userPattern} matches ${user}`;
  const branch = trigger.ignoreBranches?.find((pattern) => matchesGlob(pattern, subject.targetBranch));
  return branch === undefined ? undefined : `ignoreBranches: ${branch} matches ${subject.targetBranch}`;
}

function byDefault({ status }: TriggerSubject): Verdict {
  return status === undefined || status === 'failed'
    ? { kind: 'Allowed', message: 'no rules: allowed by default' }
    : { kind: 'Denied', message: `no rules: only failed pipelines run, this one is ${status}` };
}

type RuleMatch =
  | { readonly ok: true; readonly matches: boolean }
  | { readonly ok: false; readonly message: string };

function matchesRule(rule: TriggerRule, subject: TriggerSubject): RuleMatch {
  const matches =
    holds(rule.status, subject.status) &&
    holds(rule.user, subject.user) &&
    holds(rule.branch, subject.targetBranch);
  if (!matches || rule.title === undefined) return { ok: true, matches };
  return matchesTitle(rule.title, subject.title);
}

/** A condition on what the event does not have never holds, also `*`. */
function holds(patterns: readonly string[] | undefined, value: string | undefined): boolean {
  if (patterns === undefined) return true;
  return value !== undefined && patterns.some((pattern) => matchesGlob(pattern, value));
}

function matchesTitle(patterns: readonly string[], title: string): RuleMatch {
  for (const pattern of patterns) {
    const outcome = isTitleRegex(pattern)
      ? matchesTitleRegex(pattern, title)
      : { ok: true as const, matches: matchesGlob(pattern, title) };
    if (!outcome.ok || outcome.matches) return outcome;
  }
  return { ok: true, matches: false };
}
