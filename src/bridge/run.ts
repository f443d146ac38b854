import type { AgentRun } from '../crds/agent-run.ts';
import { labelValue } from '../crds/labels.ts';
import { API_VERSION, LABELS, MANAGED_BY } from '../crds/meta.ts';
import type { CreateRun } from './decide/decision.ts';
import { runName } from './decide/run-name.ts';

/** The AgentRun of a decision, in the workflow's namespace. The same decision gives the same object. */
export function buildRun(decision: CreateRun): AgentRun {
  const { cause, user, workflow, noteId, request, session } = decision;
  const namespace = workflow.metadata.namespace;
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: {
      name: runName(cause),
      ...(namespace === undefined ? {} : { namespace }),
      labels: {
        [LABELS.managedBy]: MANAGED_BY,
        [LABELS.workflow]: labelValue(cause.workflow),
        [LABELS.projectId]: String(cause.projectId),
        ...(session === undefined ? {} : { [LABELS.session]: labelValue(session.id) }),
      },
    },
    spec: {
      workflowRef: { name: cause.workflow },
      mergeRequest: {
        project: decision.project,
        iid: cause.iid,
        ...(cause.sha === '' ? {} : { sha: cause.sha }),
      },
      trigger: {
        kind: cause.trigger,
        eventId: cause.eventId,
        ...(user === undefined ? {} : { user: user.name, userId: user.id }),
        // Elsewhere than in the thread of its session an answer opens a thread, and a session, of its own.
        ...(session === undefined ? {} : { discussionId: session.discussionId }),
        ...(noteId === undefined ? {} : { noteId }),
      },
      ...(request === undefined ? {} : { message: request }),
      ...(session === undefined ? {} : { sessionRef: { name: session.id } }),
      publish: { kind: 'Note' },
      cancel: false,
    },
  };
}
