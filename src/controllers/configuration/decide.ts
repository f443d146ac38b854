import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { LABELS } from '../../crds/meta.ts';

/** A workflow as this process applied it last. */
export interface Applied {
  /** Of what the file says. */
  readonly digest: string;
  readonly uid: string | undefined;
  readonly generation: number;
}

export interface WantedWorkflow {
  readonly workflow: AgentWorkflow;
  readonly digest: string;
}

export interface ConfigurationObserved {
  /** What the file says. */
  readonly wanted: readonly WantedWorkflow[];
  /** Every workflow of the namespace; may be stale. */
  readonly present: readonly AgentWorkflow[];
  /** By name. */
  readonly applied: ReadonlyMap<string, Applied>;
  /** Names of workflows with runs under way. */
  readonly busy: ReadonlySet<string>;
}

export type ConfigurationAction =
  | { readonly kind: 'Apply'; readonly wanted: WantedWorkflow }
  /** Somebody else made the workflow of that name. */
  | { readonly kind: 'LeaveAlone'; readonly workflow: AgentWorkflow }
  /** Not in the file any more, and a run goes on with it. */
  | { readonly kind: 'Suspend'; readonly workflow: AgentWorkflow }
  | { readonly kind: 'Delete'; readonly workflow: AgentWorkflow };

export const FROM_FILE = { [LABELS.madeFrom]: 'file' } as const;

export const isFromFile = ({ metadata }: AgentWorkflow): boolean =>
  metadata.labels?.[LABELS.madeFrom] === FROM_FILE[LABELS.madeFrom];

/** What makes the namespace's workflows what the file says. Pure. */
export function decideConfiguration(observed: ConfigurationObserved): readonly ConfigurationAction[] {
  const { wanted, present, busy } = observed;
  const byName = new Map(present.map((workflow) => [workflow.metadata.name, workflow]));
  const names = new Set(wanted.map(({ workflow }) => workflow.metadata.name));
  return [
    ...wanted.flatMap((one): readonly ConfigurationAction[] => {
      const there = byName.get(one.workflow.metadata.name);
      if (there !== undefined && !isFromFile(there)) return [{ kind: 'LeaveAlone', workflow: there }];
      return isDone(one, there, observed.applied) ? [] : [{ kind: 'Apply', wanted: one }];
    }),
    ...present
      .filter((workflow) => isFromFile(workflow) && !names.has(workflow.metadata.name))
      .flatMap((workflow): readonly ConfigurationAction[] => {
        if (!busy.has(workflow.metadata.name ?? '')) return [{ kind: 'Delete', workflow }];
        return workflow.spec.suspend ? [] : [{ kind: 'Suspend', workflow }];
      }),
  ];
}

/** Somebody may have changed or deleted it since; a cache that does not show our own write yet proves nothing. */
function isDone(
  { workflow, digest }: WantedWorkflow,
  there: AgentWorkflow | undefined,
  applied: ReadonlyMap<string, Applied>,
): boolean {
  const last = applied.get(workflow.metadata.name ?? '');
  if (last?.digest !== digest || there?.metadata.uid !== last.uid) return false;
  return (there?.metadata.generation ?? 0) <= last.generation;
}
