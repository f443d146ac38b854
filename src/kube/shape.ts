import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { KubeError } from './errors.ts';
import type { ObjectList } from './port.ts';

/**
 * The border where the API server's JSON becomes our types. Checked here: that it is an object with metadata.
 * The rest is the API server's promise, given by the kind's schema, which it validated on write.
 */
export function asObject<T extends KubeObject>(kind: ResourceKind<T>, value: unknown, where: string): T {
  if (!isRecord(value) || !isRecord(value['metadata'])) {
    throw new KubeError({ where, reason: 'InvalidResponse', message: `the answer is not a ${kind.kind}` });
  }
  const { managedFields: _, ...metadata } = value['metadata'];
  // Items of a list carry neither apiVersion nor kind. managedFields are dropped: nobody reads them, they are
  // often half of an object's size, and the API server keeps its own when a write leaves them out.
  return { ...value, apiVersion: kind.apiVersion, kind: kind.kind, metadata } as unknown as T; // see above
}

export function asList<T extends KubeObject>(
  kind: ResourceKind<T>,
  value: unknown,
  where: string,
): ObjectList<T> {
  if (!isRecord(value) || !isRecord(value['metadata'])) {
    throw new KubeError({
      where,
      reason: 'InvalidResponse',
      message: `the answer is not a list of ${kind.plural}`,
    });
  }
  const { resourceVersion, continue: next } = value['metadata'];
  // An empty list of some API servers has `items: null`.
  const items: readonly unknown[] = Array.isArray(value['items']) ? value['items'] : [];
  return {
    items: items.map((item) => asObject(kind, item, where)),
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
    ...(typeof next === 'string' && next !== '' ? { continue: next } : {}),
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
