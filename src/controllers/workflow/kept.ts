import { type AgentWorkflow, AgentWorkflowSpec } from '../../crds/agent-workflow.ts';
import { labelValue } from '../../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../../crds/meta.ts';
import type { ControllerRevision } from '../../kube/kinds.ts';

/** The spec of a workflow that new runs go on with when a change to it is bad. */
export interface KeptSpec {
  readonly generation: number;
  readonly spec: AgentWorkflow['spec'];
  readonly revision: ControllerRevision;
}

/**
 * A spec that was accepted, as people who write configuration cannot change it: its data is immutable, and the role
 * `edit` may not make one. It goes with its workflow.
 */
export function keptRevision({ apiVersion, kind, metadata, spec }: AgentWorkflow): ControllerRevision {
  const { name = '', namespace, uid = '', generation = 0 } = metadata;
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      // With the uid: a workflow that is made anew begins with generation 1 again.
      name: `${name}-${uid.slice(0, 8)}-${generation}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { [LABELS.managedBy]: MANAGED_BY, [LABELS.workflow]: labelValue(name) },
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
    },
    data: spec,
    revision: generation,
  };
}

/** The same for a run that meets a spec before anybody has accepted it: it says nothing to those that come later. */
export function revisionForRun(workflow: AgentWorkflow): ControllerRevision {
  const revision = keptRevision(workflow);
  const { name, labels } = revision.metadata;
  return {
    ...revision,
    metadata: { ...revision.metadata, name: `${name}-run`, labels: { ...labels, [LABELS.keptFor]: 'run' } },
  };
}

export const isForRun = ({ metadata }: ControllerRevision): boolean =>
  metadata.labels?.[LABELS.keptFor] !== undefined;

/** The newest spec that was accepted for this workflow, and not for an earlier one of its name. */
export function newestKept(
  { metadata }: AgentWorkflow,
  revisions: readonly ControllerRevision[],
): KeptSpec | undefined {
  const [newest] = revisionsOf(metadata.uid, revisions)
    .filter((revision) => !isForRun(revision))
    .toSorted((a, b) => b.revision - a.revision);
  const spec = newest && specOf(newest);
  return newest && spec && { generation: newest.revision, spec, revision: newest };
}

/** What another version of the operator has kept may not be readable any more: then nothing was kept. */
export function specOf({ data }: ControllerRevision): AgentWorkflow['spec'] | undefined {
  const parsed = AgentWorkflowSpec.safeParse(data);
  // What the schema gives of JSON holds no undefined fields: defaults are values.
  return parsed.success ? (parsed.data as AgentWorkflow['spec']) : undefined;
}

export const revisionsOf = (
  uid: string | undefined,
  revisions: readonly ControllerRevision[],
): readonly ControllerRevision[] =>
  revisions.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
