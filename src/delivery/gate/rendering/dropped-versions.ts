import { isRecord, listAt, valueAt } from '../applications/manifests.ts';
import type { DroppedVersion } from '../report.ts';
import type { RenderedObject } from './objects.ts';

export type Dropped = Omit<DroppedVersion, 'consumers'>;

/** Versions that CRDs of the base serve and those of the head do not; all of them where the CRD itself is gone. */
export function droppedVersions(
  base: readonly RenderedObject[],
  head: readonly RenderedObject[],
): readonly Dropped[] {
  const after = new Map(definitions(head).map((one) => [one.crd, one]));
  return definitions(base).flatMap(({ crd, group, kind, served }) => {
    const kept = after.get(crd)?.served ?? [];
    const versions = served.filter((version) => !kept.includes(version));
    return versions.length === 0 ? [] : [{ crd, group, kind, versions, target: preferred(kept) }];
  });
}

interface Definition {
  readonly crd: string;
  readonly group: string;
  readonly kind: string;
  readonly served: readonly string[];
}

function definitions(objects: readonly RenderedObject[]): readonly Definition[] {
  return objects
    .filter(({ ref }) => ref.kind === 'CustomResourceDefinition')
    .map(({ ref, value }) => ({
      crd: ref.name,
      group: String(valueAt(value, ['spec', 'group']) ?? ''),
      kind: String(valueAt(value, ['spec', 'names', 'kind']) ?? ''),
      served: listAt(value, ['spec', 'versions'])
        .filter(isRecord)
        .filter((version) => version['served'] !== false)
        .map((version) => String(version['name'])),
    }));
}

/** What to move to: GA before beta before alpha, the higher number first, names of another form last. */
export function preferred(versions: readonly string[]): string | undefined {
  return [...versions].sort(byPreference)[0];
}

function byPreference(one: string, other: string): number {
  const [a, b] = [rank(one), rank(other)];
  for (const [index, value] of a.entries()) if (value !== b[index]) return (b[index] ?? 0) - value;
  return one < other ? -1 : 1;
}

function rank(version: string): readonly number[] {
  const parts = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (parts === null) return [0, 0, 0];
  const [, major = '0', stage, minor = '0'] = parts;
  return [stage === undefined ? 3 : stage === 'beta' ? 2 : 1, Number(major), Number(minor)];
}
