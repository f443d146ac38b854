import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { describeRef } from './paths.ts';
import type { CallOptions, KubeClient } from './port.ts';

/**
 * Server-side apply of the status: `status` is all that `fieldManager` has to say about it, so a field that is left
 * out now and was there before is removed, and other managers' fields stay. Fenced like `updateStatus`: refused with
 * `Conflict` when the object is not the version that was read. Returns the object as stored; throws KubeError.
 */
export function applyStatus<T extends KubeObject & { readonly status?: unknown }>(
  client: KubeClient,
  kind: ResourceKind<T>,
  read: T,
  status: T['status'],
  options: CallOptions & { readonly fieldManager: string },
): Promise<T> {
  const ref = refOf(kind, read);
  const { resourceVersion } = read.metadata;
  if (!resourceVersion)
    throw new TypeError(`${describeRef(kind, ref)}: apply a status only to what was read`);
  return client.patch(
    kind,
    ref,
    {
      type: 'apply',
      // A uid here would not do: for a status the API server ignores it, and writes to a successor of the same name.
      body: { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { ...ref, resourceVersion }, status },
      fieldManager: options.fieldManager,
      force: true,
    },
    { subresource: 'status', ...(options.signal ? { signal: options.signal } : {}) },
  );
}

/**
 * Replaces the whole status, only if the object is still as it was read: a fence. Refused with `Conflict` when
 * anybody wrote to it since, so exactly one of several writers that read the same version gets through.
 */
export function updateStatus<T extends KubeObject & { readonly status?: unknown }>(
  client: KubeClient,
  kind: ResourceKind<T>,
  read: T,
  status: T['status'],
  options: CallOptions = {},
): Promise<T> {
  return client.replace(kind, { ...read, status }, { ...options, subresource: 'status' });
}

/**
 * Server-side apply of an object that this operator owns (a Deployment, a NetworkPolicy, a definition): created or
 * made equal in the fields given. Fields that others hold are taken over.
 */
export function applyObject<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind<T>,
  object: T,
  options: CallOptions & { readonly fieldManager: string },
): Promise<T> {
  const { fieldManager, ...call } = options;
  return client.patch(
    kind,
    refOf(kind, object),
    { type: 'apply', body: object, fieldManager, force: true },
    call,
  );
}

function refOf(
  kind: ResourceKind,
  object: KubeObject,
): { readonly name: string; readonly namespace?: string } {
  const { name, namespace } = object.metadata;
  if (!name) throw new TypeError(`${describeRef(kind, object.metadata)}: metadata.name is missing`);
  return kind.namespaced && namespace !== undefined ? { name, namespace } : { name };
}
