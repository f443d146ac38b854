import { z } from 'zod';

/** What a zod object schema describes, deeply readonly, with absent fields absent rather than undefined. */
export type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Plain<Exclude<T[K], undefined>> }
    : T;

/** One `x-kubernetes-validations` entry. `message` names the field and says what to do. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** Where the error is reported, relative to the schema that has the rule: `.baseURL`. */
  readonly fieldPath?: string;
  readonly reason?:
    | 'FieldValueInvalid'
    | 'FieldValueForbidden'
    | 'FieldValueRequired'
    | 'FieldValueDuplicate';
}

const VALIDATIONS = 'x-kubernetes-validations';

/** Adds rules that the API server checks. zod does not: an object from the API server has passed them. */
export function cel<T extends z.ZodType>(schema: T, ...rules: readonly CelRule[]): T {
  const meta = schema.meta() ?? {};
  const before = Array.isArray(meta[VALIDATIONS]) ? meta[VALIDATIONS] : [];
  return schema.meta({ ...meta, [VALIDATIONS]: [...before, ...rules] });
}

/** A list that server-side apply merges by these keys, and in which a key may occur once. */
export function listMap<T extends z.ZodType>(schema: T, ...keys: readonly string[]): T {
  return schema.meta({
    ...schema.meta(),
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [...keys],
  });
}

/** A list of scalars in which a value may occur once. */
export function listSet<T extends z.ZodType>(schema: T): T {
  return schema.meta({ ...schema.meta(), 'x-kubernetes-list-type': 'set' });
}

/** A string of at most `max` characters, counted as the API server counts them: in code points. */
export function text(max: number, min = 0): z.ZodString {
  return z
    .string()
    .refine((value) => codePoints(value) <= max, `must be at most ${max} characters long`)
    .refine((value) => codePoints(value) >= min, `must be at least ${min} characters long`)
    .meta({ maxLength: max, ...(min > 0 && { minLength: min }) });
}

/** String keys to `value`; at most `maxProperties` of them. */
export function map<T extends z.ZodType>(value: T, maxProperties: number): z.ZodRecord<z.ZodString, T> {
  return z
    .record(z.string(), value)
    .refine(
      (record) => Object.keys(record).length <= maxProperties,
      `must have at most ${maxProperties} entries`,
    )
    .meta({ maxProperties });
}

/** Refuses every later change of a field, also its first setting or removal. For rules on the object around it. */
export function immutable(where: string, fields: readonly string[], instead: string): readonly CelRule[] {
  return fields.map((field) => ({
    rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
    message: `${where}.${field} cannot be changed: ${instead}`,
    fieldPath: `.${field}`,
    reason: 'FieldValueForbidden' as const,
  }));
}

function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}
