import { isRecord } from '../applications/manifests.ts';
import type { ObjectChange } from '../report.ts';

type Field = ObjectChange['fields'][number];

export interface FieldChanges {
  readonly fields: readonly Field[];
  /** Those that do not fit. */
  readonly more: number;
}

const MAX_FIELDS = 40;
const MAX_VALUE_CHARACTERS = 200;
/** Deeper than any API; a text of brackets could be. */
const MAX_DEPTH = 48;

/**
 * The fields in which two objects differ, by dotted path and in short JSON. Items of lists that have names are matched
 * by them: `spec.containers[app].image`. `hidden`: the values below such a path are not shown, only that they differ.
 */
export function fieldChanges(
  from: unknown,
  to: unknown,
  options: { readonly ignored?: (path: string) => boolean; readonly hidden?: (path: string) => boolean } = {},
): FieldChanges {
  const fields: Field[] = [];
  let more = 0;
  const { ignored = () => false, hidden = () => false } = options;
  compare(from, to, '', 0);
  return { fields, more };

  function compare(one: unknown, other: unknown, path: string, depth: number): void {
    if (one === other || ignored(path)) return;
    if (depth < MAX_DEPTH && isRecord(one) && isRecord(other)) {
      for (const key of keysOf(one, other))
        compare(own(one, key), own(other, key), joined(path, key), depth + 1);
      return;
    }
    if (depth < MAX_DEPTH && Array.isArray(one) && Array.isArray(other)) {
      compareLists(one, other, path, depth);
      return;
    }
    if (JSON.stringify(one) === JSON.stringify(other)) return;
    if (fields.length >= MAX_FIELDS) {
      more += 1;
      return;
    }
    const shown = (value: unknown): string => (hidden(path) ? '(hidden)' : shortJson(value));
    fields.push({
      path,
      ...(one !== undefined && { from: shown(one) }),
      ...(other !== undefined && { to: shown(other) }),
    });
  }

  function compareLists(
    one: readonly unknown[],
    other: readonly unknown[],
    path: string,
    depth: number,
  ): void {
    const names = [namesOf(one), namesOf(other)] as const;
    const [before, after] = names;
    if (before === undefined || after === undefined) {
      for (let index = 0; index < Math.max(one.length, other.length); index += 1)
        compare(one[index], other[index], `${path}[${index}]`, depth + 1);
      return;
    }
    for (const name of new Set([...before.keys(), ...after.keys()]))
      compare(before.get(name), after.get(name), `${path}[${name}]`, depth + 1);
  }
}

/** One line of JSON, cut. */
export function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS)}…` : text;
}

/** A key with dots in it is quoted, so that a path has one reading. */
export const joined = (path: string, key: string): string => {
  const segment = /[.[\]"]/.test(key) || key === '' ? `[${JSON.stringify(key)}]` : key;
  return path === '' || segment.startsWith('[') ? `${path}${segment}` : `${path}.${segment}`;
};

const own = (value: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(value, key) ? value[key] : undefined;

const keysOf = (one: object, other: object): readonly string[] =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();

/** Items by name; undefined when not each has one of its own. */
function namesOf(list: readonly unknown[]): ReadonlyMap<string, unknown> | undefined {
  const result = new Map<string, unknown>();
  for (const item of list) {
    const name = isRecord(item) ? item['name'] : undefined;
    if (typeof name !== 'string' || result.has(name)) return undefined;
    result.set(name, item);
  }
  return result;
}
