import type { Definition } from './definitions.ts';
import { GROUP, VERSION } from './meta.ts';
import { type Structural, structural } from './structural.ts';

/** The schema of whole objects of a kind. */
export function objectSchema(definition: Definition): Structural {
  const { kind } = definition.kind;
  return {
    description: definition.description,
    type: 'object',
    required: ['spec'],
    ...(definition.rules.length > 0 && { 'x-kubernetes-validations': definition.rules }),
    properties: {
      apiVersion: { type: 'string', description: `API group and version: ${GROUP}/${VERSION}.` },
      kind: { type: 'string', description: `Kind of the object: ${kind}.` },
      // The API server describes it itself and refuses a second description.
      metadata: { type: 'object' },
      spec: { ...structural(definition.spec, `${kind}.spec`), description: definition.specDescription },
      status: {
        ...structural(definition.status, `${kind}.status`),
        description: definition.statusDescription,
      },
    },
  };
}

/** The CustomResourceDefinition of a kind, ready to be written or applied. */
export function customResourceDefinition(definition: Definition) {
  const { kind, plural } = definition.kind;
  const { scale } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}`, labels: { 'app.kubernetes.io/part-of': 'hummingbird-operator' } },
    spec: {
      group: GROUP,
      scope: definition.kind.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [definition.shortName],
        categories: ['hummingbird'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: {
            status: {},
            ...(scale !== undefined && {
              scale: {
                specReplicasPath: scale.spec,
                statusReplicasPath: scale.status,
                labelSelectorPath: scale.selector,
              },
            }),
          },
          selectableFields: definition.selectableFields.map((jsonPath) => ({ jsonPath })),
          additionalPrinterColumns: definition.columns.map(({ wide, ...column }) => ({
            ...column,
            ...(wide === true && { priority: 1 }),
          })),
          schema: { openAPIV3Schema: objectSchema(definition) },
        },
      ],
    },
  };
}
