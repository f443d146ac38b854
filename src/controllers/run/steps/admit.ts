import type { AgentWorkflow } from '../../../crds/agent-workflow.ts';
import type { RunReason } from '../../../crds/reasons.ts';
import type { AgentThreads } from '../../../notes/port.ts';
import type { AskedGitLab } from '../local.ts';
import { digestOf } from '../prompt.ts';
import { repetitionOf } from '../repetition.ts';
import { isAutomatic } from '../rivals.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus, sessionIdOf, withOutcome } from '../step.ts';
import { limitText } from '../texts.ts';
import { phaseOf } from './end.ts';
import { refusedSession } from './resume.ts';

/** GitLab's Developer role: the least that may start a run. */
const DEVELOPER = 30;
/** The hold is one write; when it took longer, or came by a retry, the head may have moved. */
const FRESH_MS = 2_000;

/** Begins to read what `admit` needs, for the time in which the hold is written. Nothing is decided by it. */
export function beginAdmission(context: StepContext): void {
  const { local, run, workflow } = context;
  if (workflow === undefined || unfit(context, workflow) !== undefined) return;
  local.asked.set(run.metadata.uid ?? '', ask(context));
  // The admission shares the Secrets that are read by this.
  begun(() => unresolved(context, workflow));
}

/**
 * Checks everything that can be known before money is spent, and fixes what the run works on: the head sha,
 * the model, the prompt. A refusal is an outcome with its reason; an unreachable GitLab throws and is retried.
 */
export async function admit(context: StepContext): Promise<StepResult> {
  const { deps, local, run, workflow } = context;
  const uid = run.metadata.uid ?? '';
  const { project, iid } = run.spec.mergeRequest;
  const early = local.asked.get(uid);
  // Once: what failed is asked again.
  local.asked.delete(uid);
  if (workflow === undefined)
    return refuse(
      context,
      'InvalidSpec',
      `AgentWorkflow ${run.metadata.namespace}/${run.spec.workflowRef.name} does not exist; create it or name another in spec.workflowRef`,
    );
  const unfitting = unfit(context, workflow);
  if (unfitting !== undefined) return refuse(context, unfitting.reason, unfitting.message);

  const refused = await refusedSession(context);
  if (refused !== undefined) return refuse(context, 'InvalidSpec', refused);

  // GitLab is asked beside the references, and heard when they stand.
  const isFresh = early !== undefined && deps.clock.monotonicMs() - early.sinceMs < FRESH_MS;
  const asked = isFresh ? early : ask(context);
  const missing = await unresolved(context, workflow);
  if (missing.invalid !== undefined) return refuse(context, 'InvalidSpec', missing.invalid);

  const facts = await asked.facts;
  if (facts.kind === 'Refused') {
    const what = `GitLab answers ${facts.status} for merge request ${project}!${iid}: ${facts.message}`;
    return facts.status === 404
      ? refuse(
          context,
          'InvalidSpec',
          `${what}; check project and iid, and that the operator's token may see the project`,
        )
      : refuse(context, 'AccessDenied', `${what}; check the operator's token`);
  }
  const sha = run.spec.mergeRequest.sha ?? facts.value.sha;
  const [denied, repeated, revision] = await Promise.all([
    asked.denied,
    repetition(context, workflow, sha),
    deps.pins.pin(workflow),
  ]);
  if (denied !== undefined) return refuse(context, 'AccessDenied', denied);
  if (repeated !== undefined) {
    if (repeated.reason === 'RateLimited') await tellLimit(context);
    return refuse(context, repeated.reason, repeated.message);
  }

  deps.events.record(
    run,
    'Normal',
    'Admitted',
    `Analysing ${project}!${iid} at ${sha.slice(0, 8)} with ${missing.model}`,
  );
  const { publishesNote } = context.effective;
  return {
    written() {
      context.local.workflows.set(run.metadata.uid ?? '', workflow);
      if (publishesNote) context.local.freshIntents.set(run.metadata.uid ?? '', deps.clock.monotonicMs());
    },
    status: nextStatus(
      context,
      {
        phase: 'Claiming',
        sha,
        mergeRequest: `${project}!${iid}`,
        projectId: facts.value.projectId,
        session: sessionIdOf(run),
        // From here on the run goes on with this spec.
        workflow: { generation: workflow.metadata.generation ?? 0, revision },
        model: missing.model,
        promptDigest: missing.promptDigest,
        // The intent of the placeholder: from here on a note of this run may exist.
        ...(publishesNote ? { noteIntent: { time: deps.clock.now().toISOString() } } : {}),
      },
      { type: 'Admitted', status: 'True', reason: 'Admitted', message: `${project}!${iid} at ${sha}` },
      ...(context.effective.pool === undefined
        ? []
        : [
            {
              type: 'SandboxReady',
              status: 'Unknown',
              reason: 'Claiming',
              message: 'A sandbox is about to be claimed',
            } as const,
          ]),
      ...(publishesNote
        ? [
            {
              type: 'NotePosted',
              status: 'Unknown',
              reason: 'Posting',
              message: 'The placeholder is about to be posted',
            } as const,
          ]
        : []),
    ),
  };
}

function unfit(
  { run }: StepContext,
  { spec }: AgentWorkflow,
): { readonly reason: RunReason; readonly message: string } | undefined {
  const { name } = run.spec.workflowRef;
  const { project } = run.spec.mergeRequest;
  if (spec.suspend)
    return {
      reason: 'SkippedRule',
      message: `AgentWorkflow ${name} is suspended; set spec.suspend to false`,
    };
  if (!spec.projects.some(({ path }) => path === project))
    return {
      reason: 'InvalidSpec',
      message: `AgentWorkflow ${name} does not list project ${project}; add it to spec.projects`,
    };
  return undefined;
}

const ask = (context: StepContext): AskedGitLab => ({
  sinceMs: context.deps.clock.monotonicMs(),
  facts: begun(() => context.deps.mergeRequests.get(context.run.spec.mergeRequest, context.signal)),
  denied: begun(() => deniedUser(context)),
});

/** What fails before it is waited for, or when nobody waits any more, is no unhandled rejection. */
function begun<T>(work: () => Promise<T>): Promise<T> {
  const result = (async () => work())();
  result.catch(() => undefined);
  return result;
}

type References =
  | { readonly invalid: string }
  | { readonly invalid: undefined; readonly model: string; readonly promptDigest: string };

/** All references that the run will need, resolved now rather than in the middle of the work. */
async function unresolved(context: StepContext, workflow: AgentWorkflow): Promise<References> {
  const { deps, run } = context;
  const [model, prompt, access, token] = await Promise.all([
    deps.model(workflow, run.spec.model?.name),
    deps.prompt(workflow),
    deps.sourceAccess(workflow, run.spec.mergeRequest.project),
    context.effective.publishesNote ? deps.actionToken(workflow, run.spec.mergeRequest.project) : undefined,
  ]);
  const messages = [model, prompt, access, token].flatMap((found) =>
    found?.kind === 'Invalid' ? [found.message] : [],
  );
  if (model.kind === 'Invalid' || prompt.kind === 'Invalid' || messages.length > 0)
    return { invalid: messages.join('; ') };
  return {
    invalid: undefined,
    model: model.value.name,
    promptDigest: digestOf(prompt.value),
  };
}

/** Runs that an event started need a Developer behind them; a Manual run rests on Kubernetes' own RBAC. */
async function deniedUser({ deps, run, signal }: StepContext): Promise<string | undefined> {
  const { kind, user, userId } = run.spec.trigger;
  if (kind === 'Manual') return undefined;
  if (userId === undefined) return `The ${kind} event names no user, so nobody's access can be checked`;
  const level = await deps.mergeRequests.accessLevel(run.spec.mergeRequest.project, userId, signal);
  if (level.kind === 'Refused')
    return `GitLab answers ${level.status} when asked for the access of user ${userId}: ${level.message}`;
  if (level.value >= DEVELOPER) return undefined;
  return `User ${user ?? userId} has access level ${level.value} in ${run.spec.mergeRequest.project}; ${DEVELOPER} (Developer) is needed`;
}

/** People may ask as often as they like; what happens by itself has its measure. */
async function repetition(
  context: StepContext,
  workflow: AgentWorkflow,
  sha: string,
): Promise<ReturnType<typeof repetitionOf>> {
  const { deps, run, effective } = context;
  if (!isAutomatic(run)) return undefined;
  const { mergeRequest, workflowRef } = run.spec;
  let threads: AgentThreads | undefined;
  if (effective.publishesNote) {
    const token = await deps.actionToken(workflow, mergeRequest.project);
    const found =
      token.kind === 'Ok'
        ? await deps.notes
            .notesFor(mergeRequest.project, token.value)
            .threadsOf(mergeRequest, workflowRef.name)
        : undefined;
    // A token that may not read will not post either, and the placeholder says so.
    threads = found?.kind === 'Ok' ? found.value : undefined;
  }
  const limit = effective.maxRunsPerMergeRequest;
  return repetitionOf({ run, sha, limit, rivals: deps.rivals(run), threads });
}

/** Once for a workflow and merge request. */
async function tellLimit({ deps, run, effective, signal }: StepContext): Promise<void> {
  if (!effective.publishesNote) return;
  const { mergeRequest, workflowRef } = run.spec;
  const { project, iid } = mergeRequest;
  const key = `limit ${workflowRef.name}`;
  const notice = {
    ...{ key, internal: effective.internalNote },
    text: limitText(workflowRef.name, effective.maxRunsPerMergeRequest),
  };
  const told = await deps.exclusively(`notice ${project} ${iid} ${key}`, signal, () =>
    deps.threads.notice(mergeRequest, notice, signal),
  );
  if (told.kind === 'Refused')
    deps.events.record(run, 'Warning', 'NoticeRefused', `GitLab answers ${told.status}: ${told.message}`);
}

function refuse(context: StepContext, reason: RunReason, message: string): StepResult {
  const type = phaseOf(reason) === 'Skipped' ? 'Normal' : 'Warning';
  context.deps.events.record(context.run, type, reason, message);
  return withOutcome(context, reason, message, {}, { type: 'Admitted', status: 'False', reason, message });
}
