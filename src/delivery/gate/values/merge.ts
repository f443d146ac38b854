import { parse } from 'yaml';
import type { Mapping } from '../../structural/value.ts';
import { isRecord } from '../applications/manifests.ts';

export type Values = Readonly<Record<string, unknown>>;

/** Larger ones are rendered, and not looked into. */
export const MAX_VALUES_BYTES = 512 * 1024;

/** Values of a document as helm reads them; undefined when it is none, or too large to be looked into. */
export function parsedValues(text: string): Values | undefined {
  if (text.length > MAX_VALUES_BYTES) return undefined;
  try {
    const value: unknown = parse(text, { merge: true, uniqueKeys: false, logLevel: 'silent' });
    if (value === null || value === undefined) return {};
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The second one wins; mappings are joined, everything else is replaced, and null stays, since it takes a default away. */
export function merged(under: Mapping, over: Mapping): Mapping;
export function merged(under: Values, over: Values): Values;
export function merged(under: Values, over: Values): Values {
  const result: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = Object.hasOwn(result, key) ? result[key] : undefined;
    define(result, key, isRecord(below) && isRecord(value) ? merged(below, value) : value);
  }
  return result;
}

/** Also for a key such as `__proto__`. */
export function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
