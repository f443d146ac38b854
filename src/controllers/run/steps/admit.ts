import { createHash } from 'node:crypto';
import type { AgentWorkflow } from '../../../crds/agent-workflow.ts';
import type { RunReason } from '../../../crds/reasons.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus, sessionIdOf, withOutcome } from '../step.ts';
import { refusedSession } from './resume.ts';

/** GitLab's Developer role: the least that may start a run. */
const DEVELOPER = 30;

/**
 * Checks everything that can be known before money is spent, and fixes what the run works on: the head sha,
 * the model, the prompt. A refusal is an outcome with its reason; an unreachable GitLab throws and is retried.
 */
export async function admit(context: StepContext): Promise<StepResult> {
  const { deps, run, workflow, signal } = context;
  const name = run.spec.workflowRef.name;
  const { project, iid } = run.spec.mergeRequest;
  if (workflow === undefined)
    return refuse(
      context,
      'InvalidSpec',
      `AgentWorkflow ${run.metadata.namespace}/${name} does not exist; create it or name another in spec.workflowRef`,
    );
  if (workflow.spec.suspend)
    return refuse(context, 'SkippedRule', `AgentWorkflow ${name} is suspended; set spec.suspend to false`);
  if (!workflow.spec.projects.some((entry) => entry.path === project))
    return refuse(
      context,
      'InvalidSpec',
      `AgentWorkflow ${name} does not list project ${project}; add it to spec.projects`,
    );

  const refused = await refusedSession(context);
  if (refused !== undefined) return refuse(context, 'InvalidSpec', refused);

  const missing = await unresolved(context, workflow);
  if (missing.invalid !== undefined) return refuse(context, 'InvalidSpec', missing.invalid);

  const facts = await deps.mergeRequests.get(run.spec.mergeRequest, signal);
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
  const denied = await deniedUser(context);
  if (denied !== undefined) return refuse(context, 'AccessDenied', denied);

  const sha = run.spec.mergeRequest.sha ?? facts.value.sha;
  deps.events.record(
    run,
    'Normal',
    'Admitted',
    `Analysing ${project}!${iid} at ${sha.slice(0, 8)} with ${missing.model}`,
  );
  const { publishesNote } = context.effective;
  return {
    written() {
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
    promptDigest: `sha256:${createHash('sha256').update(prompt.value).digest('hex')}`,
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

function refuse(context: StepContext, reason: RunReason, message: string): StepResult {
  context.deps.events.record(context.run, 'Warning', reason, message);
  return withOutcome(context, reason, message, {}, { type: 'Admitted', status: 'False', reason, message });
}
