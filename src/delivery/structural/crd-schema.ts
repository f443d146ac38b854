import type { Schema } from './schema.ts';
import { childOf, isList, isMapping, type Value, valueAt } from './value.ts';

/** Schema of one version of a kind among CRDs as a chart ships them; undefined: there is none to judge by. */
export function crdSchema(
  crds: readonly Value[],
  wanted: { readonly group: string; readonly kind: string; readonly version: string },
): Schema | undefined {
  const crd = crds.find(
    (one) =>
      childOf(one, 'kind') === 'CustomResourceDefinition' &&
      valueAt(one, ['spec', 'group']) === wanted.group &&
      valueAt(one, ['spec', 'names', 'kind']) === wanted.kind,
  );
  const versions = valueAt(crd, ['spec', 'versions']);
  const version = isList(versions)
    ? versions.find((one) => childOf(one, 'name') === wanted.version && childOf(one, 'served') !== false)
    : undefined;
  const schema = valueAt(version, ['schema', 'openAPIV3Schema']);
  return isMapping(schema) ? schema : undefined;
}
