import type { ResourceKind } from '../crds/meta.ts';
import type { ObjectRef } from './port.ts';

/** `/api/v1/namespaces/ns/pods` or `/apis/group/version/…`; without a namespace: of all namespaces. */
export function collectionPath(kind: ResourceKind, namespace: string | undefined): string {
  const root = kind.apiVersion.includes('/') ? `/apis/${kind.apiVersion}` : `/api/${kind.apiVersion}`;
  const within = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${within}/${kind.plural}`;
}

/** Throws when a namespaced object is named without its namespace: the URL would mean something else. */
export function objectPath(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  if (ref.name === '')
    throw new TypeError(`${kind.plural}: an empty name would address the whole collection`);
  if (kind.namespaced && !ref.namespace) {
    throw new TypeError(`${kind.plural}/${ref.name}: a namespace is needed`);
  }
  const path = `${collectionPath(kind, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}

/** `pods.v1` and `agentruns.hummingbird.dev/v1alpha1`. */
export function kindId(kind: ResourceKind): string {
  return `${kind.plural}.${kind.apiVersion}`;
}

/** For messages: `pods/ns/name`. */
export function describeRef(
  kind: ResourceKind,
  ref: { readonly namespace?: string | undefined; readonly name?: string | undefined },
): string {
  return [kind.plural, ...(ref.namespace ? [ref.namespace] : []), ...(ref.name ? [ref.name] : [])].join('/');
}
