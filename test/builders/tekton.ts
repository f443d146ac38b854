import type { Cluster } from '../../hack/cluster/cluster.ts';

/** PipelineRun and TaskRun as far as reading them goes: names, versions and scope are Tekton's, the rest is open. */
const definition = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.tekton.dev` },
  spec: {
    group: 'tekton.dev',
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

export const TEKTON_DEFINITIONS = [
  definition('pipelineruns', 'PipelineRun'),
  definition('taskruns', 'TaskRun'),
];

/** Applies the two and waits until they are served. They stay: other tests may be using them. */
export async function installTekton(cluster: Cluster): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: TEKTON_DEFINITIONS };
  await cluster.kubectl(
    ['apply', '--server-side', '--force-conflicts', '--field-manager=test', '-f', '-'],
    JSON.stringify(list),
  );
  const names = TEKTON_DEFINITIONS.map(({ metadata }) => `crd/${metadata.name}`);
  await cluster.kubectl(['wait', ...names, '--for=condition=Established', '--timeout=60s']);
}
