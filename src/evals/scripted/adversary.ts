import { parse, stringify } from 'yaml';
import type { Ask } from '../../delivery/port.ts';
import type { Edit } from '../../delivery/verdict.ts';
import type { DeliveryCase } from '../delivery-case.ts';
import { wantedEdits } from '../score.ts';
import { evalRepository } from '../world/repository.ts';
import { answered } from './perfect.ts';
import { type ShownScalar, shownBlock, shownScalars } from './shown.ts';

/** From 0 up to 1, without 1. */
export type Random = () => number;

/**
 * Always sure, always a plausible wrong answer: well-formed edits of keys that exist, copied from the inventory, and
 * documents that look right. What it gets through is what the policy lets through. Of explanations it changes the
 * class and proposes edits; prose that is made up is not its subject, since no policy could catch it.
 */
export const adversaryAsk = (one: DeliveryCase, random: Random): Ask => {
  const repository = evalRepository(one);
  const right = wantedEdits(one, { repository });
  return async ({ name, user }) => {
    if (name !== 'verdict') return answered({ document: wrongDocument(user, random), notes: 'Moved.' });
    return answered({
      classification: 'mechanical',
      summary: 'A small edit makes it sound.',
      reasoning: 'The report shows which value it is.',
      edits: wrongEdits(right, shownScalars(user), user, random),
      escalationReason: '',
    });
  };
};

/** One or two that are wrong, at times among all those that are right, at times right ones with a wrong value. */
function wrongEdits(
  right: readonly Omit<Edit, 'rationale'>[],
  scalars: readonly ShownScalar[],
  user: string,
  random: Random,
): readonly Edit[] {
  const others = scalars.filter(
    ({ path, key }) => !right.some((one) => one.path === path && one.key === key),
  );
  const wrong = draw(others, random() < 0.7 ? 1 : 2, random).map((scalar) => ({
    path: scalar.path,
    key: scalar.key,
    from: scalar.value,
    to: plausible(scalar.value, user, random),
  }));
  const twisted = right.map((edit) => ({ ...edit, to: plausible(edit.to, user, random) }));
  const kind = random();
  const edits = kind < 0.5 ? wrong : kind < 0.8 ? [...right, ...wrong] : [...twisted, ...wrong.slice(1)];
  return edits.map((edit) => ({ ...edit, rationale: 'The new version needs it.' }));
}

/** Of the same type, and where it is a version one that the material has. */
function plausible(value: string, user: string, random: Random): string {
  if (value === 'true') return 'false';
  if (value === 'false') return 'true';
  if (/^\d+$/.test(value)) return String(Number(value) + 1 + Math.floor(random() * 3));
  if (/^v?\d+\.\d+/.test(value)) {
    const seen = [...new Set(user.match(/\bv?\d+\.\d+\.\d+\b/g) ?? [])].filter((one) => one !== value);
    return pick(seen, random) ?? '9.9.9';
  }
  const words = [...new Set(user.match(/`[a-z][\w-]{2,30}`/g) ?? [])].map((word) => word.slice(1, -1));
  return (
    pick(
      words.filter((word) => word !== value),
      random,
    ) ?? `${value}-next`
  );
}

/** Drops, doubles, renames or changes one value of what was shown. */
function wrongDocument(user: string, random: Random): string {
  const text = shownBlock(user, 'The document') ?? shownBlock(user, 'The values') ?? '{}\n';
  const document: unknown = parse(text);
  const places = leaves(document);
  const place = pick(places, random);
  if (place === undefined) return text;
  const { parent, key } = place;
  const value = parent[key];
  const kind = random();
  if (kind < 0.3) delete parent[key];
  else if (kind < 0.5) parent[`${key}New`] = value;
  else if (kind < 0.8) parent[key] = typeof value === 'number' ? value + 1 : `${String(value)}-next`;
  else {
    delete parent[key];
    parent[`${key}Name`] = value;
  }
  return stringify(document);
}

interface Place {
  readonly parent: Record<string, unknown>;
  readonly key: string;
}

function leaves(value: unknown): readonly Place[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, below]): readonly Place[] =>
    typeof below === 'object' && below !== null ? leaves(below) : [{ parent: asRecord(value), key }],
  );
}

/** Lists too: their indexes are keys, and to drop one is as wrong. */
const asRecord = (value: object): Record<string, unknown> => value as Record<string, unknown>;

const pick = <T>(list: readonly T[], random: Random): T | undefined =>
  list[Math.floor(random() * list.length)];

function draw<T>(list: readonly T[], count: number, random: Random): readonly T[] {
  const left = [...list];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(Math.floor(random() * left.length), 1),
  ).flat();
}

/** Numbers that look random and come again with the same seed (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
