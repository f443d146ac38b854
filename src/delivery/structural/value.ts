/** What a YAML document holds: JSON's values, whole numbers of any size as bigint. */
export type Value =
  | null
  | string
  | number
  | bigint
  | boolean
  | readonly Value[]
  | { readonly [key: string]: Value };

export type Mapping = { readonly [key: string]: Value };

/** From the root to a value; list items by their index, in decimal. */
export type Path = readonly string[];

/** An end of the tree: a scalar, or a mapping or list that holds nothing. */
export interface Leaf {
  readonly path: Path;
  readonly value: Value;
}

export const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isList = (value: Value | undefined): value is readonly Value[] => Array.isArray(value);

export const isInteger = (value: Value): boolean => typeof value === 'bigint' || Number.isInteger(value);

export function leavesOf(value: Value, path: Path = []): readonly Leaf[] {
  const below = childrenOf(value);
  if (below.length === 0) return [{ path, value }];
  return below.flatMap(([key, child]) => leavesOf(child, [...path, key]));
}

/** Of a mapping or list, in their order; of anything else none. */
export function childrenOf(value: Value): readonly (readonly [string, Value])[] {
  if (isList(value)) return value.map((item, index) => [String(index), item] as const);
  return isMapping(value) ? Object.entries(value) : [];
}

export const valueAt = (value: Value | undefined, path: Path): Value | undefined =>
  path.reduce<Value | undefined>((found, key) => childOf(found, key), value);

export function childOf(value: Value | undefined, key: string): Value | undefined {
  if (isList(value)) return value[Number(key)];
  return isMapping(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** 1 and 1.0 are the same number; an absent value equals nothing. The order of keys does not count. */
export function equals(a: Value | undefined, b: Value | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, at) => equals(item, b[at]));
  if (!isMapping(a))
    return isNumeric(a) && isNumeric(b) ? Number(a) === Number(b) && String(a) === String(b) : a === b;
  if (!isMapping(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => equals(a[key], childOf(b, key)));
}

export const dotted = (path: Path): string => path.join('.');

export const isWithin = (path: Path, ancestor: Path): boolean =>
  ancestor.length <= path.length && ancestor.every((key, at) => path[at] === key);

/** Data that somebody else parsed, as a value: what JSON has no word for is null. */
export function jsonValue(data: unknown): Value {
  if (Array.isArray(data)) return data.map(jsonValue);
  switch (typeof data) {
    case 'string':
    case 'number':
    case 'bigint':
    case 'boolean':
      return data;
    case 'object':
      if (data === null) return null;
      return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, jsonValue(value)]));
    default:
      return null;
  }
}

/** As people see it in a sentence: JSON, in one line of at most 80 characters. */
export function shown(value: Value): string {
  const text = JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? Number(item) : item));
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

const isNumeric = (value: Value): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';
