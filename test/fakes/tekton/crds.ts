/**
 * Tekton's two kinds as far as we read them. As in Tekton's own definitions the API server keeps every field and checks
 * none; what a run is made of is nobody's business here, since no controller acts on it.
 */
export const TEKTON_CRDS: readonly object[] = [
  definition('PipelineRun', 'pipelineruns', ['pr', 'prs']),
  definition('TaskRun', 'taskruns', ['tr', 'trs']),
];

/** Idempotent, so that test files may do it side by side. They stay: other files may be using them. */
export async function applyTekton(
  kubectl: (args: readonly string[], input?: string) => Promise<string>,
): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: TEKTON_CRDS });
  await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], list);
  await kubectl([
    ...['wait', '--for=condition=Established', '--timeout=60s'],
    ...['pipelineruns', 'taskruns'].map((plural) => `crd/${plural}.tekton.dev`),
  ]);
}

function definition(kind: string, plural: string, shortNames: readonly string[]): object {
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.tekton.dev` },
    spec: {
      group: 'tekton.dev',
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), shortNames },
      versions: [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }],
    },
  };
}
