import type { Finding } from './check.ts';
import { enumOf, type Schema, schemaAt } from './schema.ts';
import {
  childOf,
  equals,
  isMapping,
  isWithin,
  type Leaf,
  leavesOf,
  type Path,
  type Value,
  valueAt,
} from './value.ts';

/** Ends of the original that cannot stay where they are: at or below what the schema rejects. */
export const displacedLeaves = (original: Value, findings: readonly Finding[]): readonly Leaf[] =>
  leavesOf(original).filter(({ path }) => isDisplaced(path, findings));

export const isDisplaced = (path: Path, findings: readonly Finding[]): boolean =>
  findings.some((finding) => finding.kind !== 'Missing' && isWithin(path, finding.path));

/**
 * Ends of the proposal that come from nowhere. Each has to be what the original has at that place, or what was
 * displaced, or what the schema itself says at that place: by position, since an object's own name is among its
 * values too, and no answer to a field that wants another name.
 */
export function inventedLeaves(
  original: Value,
  proposed: Value,
  schema: Schema,
  findings: readonly Finding[],
): readonly Leaf[] {
  const displaced = displacedLeaves(original, findings);
  return leavesOf(proposed).filter(
    ({ path, value }) =>
      !equals(valueAt(original, path), value) &&
      !isBare(value, original, path) &&
      !displaced.some((leaf) => equals(leaf.value, value)) &&
      !isRetyped(valueAt(original, path), path, value, findings) &&
      !vocabularyAt(schema, path).some((word) => equals(word, value)),
  );
}

/** What the schema offers at a place: default, const, members of enum, and its part of a default further up. */
export function vocabularyAt(schema: Schema, path: Path): readonly Value[] {
  const here = schemaAt(schema, path);
  const inherited = path.map((_, depth) => {
    const above = schemaAt(schema, path.slice(0, depth));
    return valueAt(childOf(above, 'default'), path.slice(depth));
  });
  return [childOf(here, 'default'), childOf(here, 'const'), ...inherited, ...(enumOf(here) ?? [])].filter(
    (word) => word !== undefined,
  );
}

/** Values of the original that the proposal has nowhere, each once for every time that it is fewer. */
export function lostLeaves(original: Value, proposed: Value): readonly Leaf[] {
  const left = new Map<string, number>();
  for (const { value } of leavesOf(proposed)) left.set(nameOf(value), (left.get(nameOf(value)) ?? 0) + 1);
  const take = (value: Value): boolean => {
    const count = left.get(nameOf(value)) ?? 0;
    left.set(nameOf(value), count - 1);
    return count > 0;
  };
  // What stayed in its place first, so that it is not spent on another that went.
  const moved = leavesOf(original).filter(
    ({ path, value }) => !(equals(valueAt(proposed, path), value) && take(value)),
  );
  return moved.filter(({ value }) => !take(value));
}

const nameOf = (value: Value): string =>
  typeof value === 'string'
    ? `"${value}`
    : isMapping(value)
      ? '{}'
      : Array.isArray(value)
        ? '[]'
        : String(value);

/** Words that came back with other capitals: seldom wrong, and never to go unsaid. */
export function respelledLeaves(
  original: Value,
  proposed: Value,
): readonly { readonly path: Path; readonly from: string; readonly to: string }[] {
  return leavesOf(proposed).flatMap(({ path, value }) => {
    const before = valueAt(original, path);
    const respelled =
      typeof before === 'string' &&
      typeof value === 'string' &&
      before !== value &&
      before.toLowerCase() === value.toLowerCase();
    return respelled ? [{ path, from: before, to: value }] : [];
  });
}

/** A section that has lost all that was in it holds no data. */
const isBare = (value: Value, original: Value, path: Path): boolean =>
  isMapping(value) && Object.keys(value).length === 0 && isMapping(valueAt(original, path));

/** `"8080"` where a number is wanted, and the other way round. */
const isRetyped = (
  before: Value | undefined,
  path: Path,
  value: Value,
  findings: readonly Finding[],
): boolean =>
  before !== undefined &&
  before !== null &&
  value !== null &&
  typeof before !== 'object' &&
  typeof value !== 'object' &&
  String(before) === String(value) &&
  findings.some(({ kind, path: at }) => kind === 'WrongType' && isWithin(path, at));
