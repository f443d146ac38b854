import type { KubeObject, ResourceKind } from '../../src/crds/meta.ts';
import { applyObject } from '../../src/kube/apply.ts';
import { CUSTOM_RESOURCE_DEFINITION, type CustomResourceDefinition } from '../../src/kube/kinds.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { eventually } from './plane.ts';

/** A custom resource of these tests alone, with a status subresource. */
export interface Widget extends KubeObject {
  readonly spec: { readonly size: number };
  readonly status?: { readonly phase?: string; readonly count?: number; readonly note?: string };
}

export const WIDGET: ResourceKind<Widget> = {
  apiVersion: 'kube.test/v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
};

export const WIDGET_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.kube.test' },
  spec: {
    group: 'kube.test',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                properties: { size: { type: 'integer', minimum: 0 } },
              },
              status: {
                type: 'object',
                properties: {
                  phase: { type: 'string' },
                  count: { type: 'integer' },
                  note: { type: 'string' },
                },
              },
            },
          },
        },
      },
    ],
  },
};

export async function registerWidgets(client: KubeClient): Promise<void> {
  const definition: CustomResourceDefinition = WIDGET_DEFINITION;
  await applyObject(client, CUSTOM_RESOURCE_DEFINITION, definition, { fieldManager: 'test' });
  await eventually('widgets are served', () =>
    client.list(WIDGET, {}).then(
      () => true,
      () => false,
    ),
  );
}
