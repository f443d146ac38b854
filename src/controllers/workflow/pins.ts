import { AGENT_WORKFLOWS, type AgentWorkflow } from '../../crds/agent-workflow.ts';
import { isKubeError } from '../../kube/errors.ts';
import { CONTROLLER_REVISION, type ControllerRevision } from '../../kube/kinds.ts';
import type { KubeClient, ObjectRef } from '../../kube/port.ts';
import { keptRevision, revisionForRun, specOf } from './kept.ts';

/** Configuration that runs in flight go on with. */
export interface WorkflowPins {
  /** Has the spec kept, and says under which name. Its generation is that of `metadata`. Throws KubeError. */
  pin(workflow: AgentWorkflow): Promise<string>;
  /** Undefined when it is not kept any more, or in a form that is not understood. Throws KubeError. */
  pinned(revision: ObjectRef): Promise<AgentWorkflow['spec'] | undefined>;
}

export function workflowPins({
  kube,
  revisions,
}: {
  readonly kube: KubeClient;
  /** Those that this process knows of; may be stale. */
  revisions(): readonly ControllerRevision[];
}): WorkflowPins {
  const known = ({ namespace, name }: ObjectRef): ControllerRevision | undefined =>
    revisions().find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  return {
    async pin(workflow) {
      const accepted = keptRevision(workflow).metadata;
      if (known({ ...accepted, name: accepted.name ?? '' }) !== undefined) return accepted.name ?? '';
      const own = revisionForRun(workflow);
      const name = own.metadata.name ?? '';
      if (known({ ...own.metadata, name }) !== undefined) return name;
      try {
        await kube.create(CONTROLLER_REVISION, own);
      } catch (error) {
        // Another run was as early as this one.
        if (!isKubeError(error, 'AlreadyExists')) throw error;
      }
      return name;
    },
    async pinned(ref) {
      const found = known(ref) ?? (await kube.get(CONTROLLER_REVISION, ref));
      return found && specOf(found);
    },
  };
}

/** A workflow with the spec that a run goes on with; the workflow itself may be gone. */
export const pinnedWorkflow = (
  spec: AgentWorkflow['spec'],
  metadata: ObjectRef,
  present: AgentWorkflow | undefined,
): AgentWorkflow => ({
  apiVersion: AGENT_WORKFLOWS.apiVersion,
  kind: AGENT_WORKFLOWS.kind,
  metadata,
  ...present,
  spec,
});
