import { isRecord, valueAt } from '../applications/manifests.ts';
import { shortJson } from '../rendering/fields.ts';
import type { ApplicationReport } from '../report.ts';
import { dotted, leavesOf, placeOf } from './leaves.ts';
import type { Values } from './merge.ts';

export type MovedDefault = ApplicationReport['defaults'][number];

/** Defaults that are not the same in both charts, where our values say nothing of them. */
export function movedDefaults(base: Values, head: Values, set: Values): readonly MovedDefault[] {
  const paths = new Map<string, readonly string[]>();
  for (const values of [base, head])
    for (const { path } of leavesOf(values)) paths.set(JSON.stringify(path), path);
  return [...paths.values()].flatMap((path) => {
    const from = valueHere(base, path);
    const to = valueHere(head, path);
    if (JSON.stringify(from) === JSON.stringify(to)) return [];
    // A mapping on the other side: its own leaves are told.
    if (isSection(from) || isSection(to)) return [];
    if (isSet(set, path)) return [];
    return [
      {
        key: dotted(path),
        ...(from !== undefined && { from: shortJson(from) }),
        ...(to !== undefined && { to: shortJson(to) }),
      },
    ];
  });
}

function valueHere(values: Values, path: readonly string[]): unknown {
  const place = placeOf(values, path);
  return place.kind === 'Here' ? place.value : undefined;
}

/** Ours at that very place, or something above it that is no mapping and so replaces all below. */
function isSet(set: Values, path: readonly string[]): boolean {
  const place = placeOf(set, path);
  if (place.kind !== 'Open') return place.kind === 'Here';
  return !isRecord(valueAt(set, place.at));
}

const isSection = (value: unknown): boolean => isRecord(value) && Object.keys(value).length > 0;

/** A default that was switched on or off. */
export const hasFlipped = ({ from, to }: MovedDefault): boolean =>
  (from === 'true' && to === 'false') || (from === 'false' && to === 'true');
