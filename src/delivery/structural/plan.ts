import { childOf, equals, isMapping, type Mapping, type Path, type Value } from './value.ts';

/** One change of a document, by path: what the write is, once two documents have passed every check. */
export type Operation =
  | { readonly kind: 'Rename'; readonly path: Path; readonly to: string; readonly value: Value }
  | { readonly kind: 'Set'; readonly path: Path; readonly value: Value; readonly before: Value | undefined }
  | { readonly kind: 'Remove'; readonly path: Path; readonly value: Value };

/**
 * How to get from one document to the other, in the order in which it is done: renames, what is set, what goes. A
 * key that went while just one with the same value came beside it was renamed.
 */
export function planOf(original: Mapping, proposed: Mapping): readonly Operation[] {
  const operations = operationsOf(original, withoutEmptied(original, proposed), []);
  const rank = { Rename: 0, Set: 1, Remove: 2 } as const;
  return operations.toSorted((a, b) => rank[a.kind] - rank[b.kind]);
}

/** Sections that lost all they had are left out: as `section:` they would be null, which takes a chart's defaults away. */
export function withoutEmptied(original: Mapping, proposed: Mapping): Mapping {
  const kept = Object.entries(proposed).flatMap(([key, value]): [string, Value][] => {
    const before = childOf(original, key);
    if (!isMapping(value) || !isMapping(before)) return [[key, value]];
    const below = withoutEmptied(before, value);
    return Object.keys(below).length === 0 && Object.keys(before).length > 0 ? [] : [[key, below]];
  });
  return Object.fromEntries(kept);
}

function operationsOf(original: Mapping, proposed: Mapping, at: Path): readonly Operation[] {
  const renames = renamesOf(original, proposed);
  const taken = new Set(renames.values());
  const gone = Object.entries(original).flatMap(([key, value]): Operation[] => {
    if (Object.hasOwn(proposed, key)) return [];
    const to = renames.get(key);
    const path = [...at, key];
    return [to === undefined ? { kind: 'Remove', path, value } : { kind: 'Rename', path, to, value }];
  });
  const rest = Object.entries(proposed).flatMap(([key, value]): readonly Operation[] => {
    const before = childOf(original, key);
    const path = [...at, key];
    if (before !== undefined && equals(before, value)) return [];
    if (isMapping(before) && isMapping(value)) return operationsOf(before, value, path);
    return taken.has(key) ? [] : [{ kind: 'Set', path, value, before }];
  });
  return [...gone, ...rest];
}

/** Only where both sides have no other choice: two keys with one value could each have become the other. */
function renamesOf(original: Mapping, proposed: Mapping): ReadonlyMap<string, string> {
  const gone = Object.entries(original).filter(([key]) => !Object.hasOwn(proposed, key));
  const come = Object.entries(proposed).filter(([key]) => !Object.hasOwn(original, key));
  return new Map(
    gone.flatMap(([key, value]) => {
      const heirs = come.filter(([, other]) => equals(value, other));
      const rivals = gone.filter(([, other]) => equals(value, other));
      const [heir] = heirs;
      return heir !== undefined && heirs.length === 1 && rivals.length === 1 ? [[key, heir[0]]] : [];
    }),
  );
}
