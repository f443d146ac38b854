import type { Anchor } from './apply-plan.ts';
import { readDocuments } from './document.ts';
import type { Operation } from './plan.ts';
import { childrenOf, equals, isMapping, type Mapping, type Path, type Value, valueAt } from './value.ts';

/** A file that may hold the values. */
export interface Candidate {
  readonly path: string;
  readonly text: string;
}

export type Location =
  | {
      readonly kind: 'Found';
      readonly candidate: Candidate;
      readonly anchor: Anchor;
      readonly value: Mapping;
    }
  | { readonly kind: 'NotFound'; readonly reason: string };

/**
 * The one place of the repository that sets all that the plan changes. More than one, or none: somebody else has to
 * say which. A plan that only adds has no place.
 */
export function locate(candidates: readonly Candidate[], operations: readonly Operation[]): Location {
  const known = operations.flatMap(({ path, ...operation }) => {
    const before = operation.kind === 'Set' ? operation.before : operation.value;
    return before === undefined ? [] : [{ path, before }];
  });
  if (known.length === 0)
    return notFound('nothing that is there changes, so nothing says where the new keys go');
  const unreadable: string[] = [];
  const found = candidates.flatMap((candidate) =>
    readDocuments(candidate.text).flatMap((reading, document) => {
      if (reading.kind === 'Unreadable') {
        unreadable.push(`${candidate.path} ${reading.reason}`);
        return [];
      }
      return [...mappingsOf(reading.value, [])]
        .filter(({ value }) => known.every(({ path, before }) => equals(valueAt(value, path), before)))
        .map(({ path: prefix, value }) => ({
          kind: 'Found' as const,
          candidate,
          anchor: { document, prefix },
          value,
        }));
    }),
  );
  const [first, ...others] = found;
  if (first !== undefined && others.length === 0) return first;
  if (first !== undefined)
    return notFound(`${found.length} places set them: ${[...new Set(found.map(placeOf))].join(', ')}`);
  return notFound(['no file sets all of them in one place', ...unreadable].join('; '));
}

const placeOf = ({ candidate, anchor }: Extract<Location, { kind: 'Found' }>): string =>
  anchor.prefix.length === 0 ? candidate.path : `${candidate.path} at ${anchor.prefix.join('.')}`;

function* mappingsOf(value: Value, path: Path): Generator<{ readonly path: Path; readonly value: Mapping }> {
  if (isMapping(value)) yield { path, value };
  for (const [key, child] of childrenOf(value)) yield* mappingsOf(child, [...path, key]);
}

const notFound = (reason: string): Location => ({ kind: 'NotFound', reason });
