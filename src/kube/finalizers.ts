import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { isKubeError } from './errors.ts';
import type { CallOptions, JsonPatchOp, KubeClient } from './port.ts';

/**
 * Adds one finalizer and leaves the others alone. Returns the object as stored; the very object when it was there.
 * Throws `Conflict` when the object changed since it was read.
 */
export async function addFinalizer<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind<T>,
  object: T,
  finalizer: string,
  options: CallOptions = {},
): Promise<T> {
  const present = object.metadata.finalizers ?? [];
  if (present.includes(finalizer)) return object;
  const ops: JsonPatchOp[] =
    present.length === 0
      ? [{ op: 'add', path: '/metadata/finalizers', value: [finalizer] }]
      : [{ op: 'add', path: '/metadata/finalizers/-', value: finalizer }];
  return client.patch(kind, refOf(object), { type: 'json', body: [...guards(object), ...ops] }, options);
}

/**
 * Removes one finalizer by its place, guarded by its value there. Undefined when the object is gone afterwards or
 * was before. Throws `Conflict` when the object changed since it was read.
 */
export async function removeFinalizer<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind<T>,
  object: T,
  finalizer: string,
  options: CallOptions = {},
): Promise<T | undefined> {
  const at = (object.metadata.finalizers ?? []).indexOf(finalizer);
  if (at === -1) return object;
  const path = `/metadata/finalizers/${at}`;
  const ops: JsonPatchOp[] = [
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ];
  try {
    return await client.patch(
      kind,
      refOf(object),
      { type: 'json', body: [...guards(object), ...ops] },
      options,
    );
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** A replaced resourceVersion is compared by the API server: Conflict when it is not the present one. */
function guards(object: KubeObject): readonly JsonPatchOp[] {
  const { uid, resourceVersion } = object.metadata;
  return [
    ...(uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid } as const]),
    ...(resourceVersion === undefined
      ? []
      : [{ op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion } as const]),
  ];
}

function refOf(object: KubeObject): { readonly name: string; readonly namespace?: string } {
  const { name = '', namespace } = object.metadata;
  return namespace === undefined ? { name } : { name, namespace };
}
