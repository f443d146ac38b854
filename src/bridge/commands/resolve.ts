import type { WorkflowView } from '../decide/decision.ts';
import { nameOf } from '../decide/decision.ts';

/** What is no workflow. A workflow of one of these names can only be started by an alias. */
export const BUILT_IN = {
  help: 'list what there is',
  status: 'show the runs on this merge request',
  cancel: 'stop the runs on this merge request; a workflow behind it stops only those of that one',
  stop: 'the same',
  approve: 'let a run make a call that waits for approval; its note says which, by an id behind this word',
  deny: 'refuse it',
} as const;

export type BuiltIn = keyof typeof BUILT_IN;

export const isBuiltIn = (name: string): name is BuiltIn => Object.hasOwn(BUILT_IN, name);

export type Resolved<W extends WorkflowView> =
  | { readonly kind: 'Found'; readonly workflow: W }
  /** At least two, by name. */
  | { readonly kind: 'Ambiguous'; readonly workflows: readonly W[] }
  | { readonly kind: 'Unknown' };

/** The workflow that has this name or alias, else the only one of which a name or alias begins so. */
export function resolveWorkflow<W extends WorkflowView>(name: string, workflows: readonly W[]): Resolved<W> {
  const exact = workflows.filter((workflow) => namesOf(workflow).includes(name));
  // Of a name and somebody else's alias the name counts.
  const [named] = exact.filter((workflow) => nameOf(workflow) === name);
  if (named !== undefined) return { kind: 'Found', workflow: named };
  return only(exact) ?? only(workflows.filter((workflow) => beginsSo(workflow, name))) ?? { kind: 'Unknown' };
}

const beginsSo = (workflow: WorkflowView, name: string): boolean =>
  name !== '' && namesOf(workflow).some((one) => one.startsWith(name));

const namesOf = (workflow: WorkflowView): readonly string[] => [
  nameOf(workflow),
  ...(workflow.spec.commands?.aliases ?? []),
];

/** Undefined when there is none. */
function only<W extends WorkflowView>(workflows: readonly W[]): Resolved<W> | undefined {
  const [first, second] = workflows;
  if (first === undefined) return undefined;
  return second === undefined ? { kind: 'Found', workflow: first } : { kind: 'Ambiguous', workflows };
}
