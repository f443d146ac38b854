import type { Value } from './value.ts';
import { childOf, isList, isMapping } from './value.ts';

/** A JSON Schema, of a CRD's version or a chart's values, as data that somebody else wrote. */
export type Schema = Value;

/** What unknown keys mean: pruned from custom resources, kept in values unless the schema forbids them. */
export type SchemaKind = 'CustomResource' | 'Values';

/** Combinations are nobody's to judge here: the API server or helm has the last word on them. */
const COMBINATIONS = ['oneOf', 'anyOf', 'allOf', 'not', 'if', '$ref', '$dynamicRef', '$recursiveRef'];

/** Nothing below is judged. */
export const isOpaque = (schema: Schema | undefined): boolean =>
  !isMapping(schema) ||
  schema['x-kubernetes-preserve-unknown-fields'] === true ||
  schema['x-kubernetes-embedded-resource'] === true ||
  COMBINATIONS.some((word) => Object.hasOwn(schema, word));

/** Types that it allows; none: any. */
export function typesOf(schema: Schema | undefined): readonly string[] {
  const type = childOf(schema, 'type');
  if (typeof type === 'string') return [type];
  return isList(type) ? type.filter((one) => typeof one === 'string') : [];
}

export const propertiesOf = (schema: Schema | undefined): { readonly [key: string]: Schema } | undefined => {
  const properties = childOf(schema, 'properties');
  return isMapping(properties) ? properties : undefined;
};

export const requiredOf = (schema: Schema | undefined): readonly string[] => {
  const required = childOf(schema, 'required');
  return isList(required) ? required.filter((key) => typeof key === 'string') : [];
};

export const enumOf = (schema: Schema | undefined): readonly Value[] | undefined => {
  const members = childOf(schema, 'enum');
  return isList(members) ? members : undefined;
};

export type KeyReading =
  | { readonly kind: 'Declared'; readonly schema: Schema }
  | { readonly kind: 'Rejected' }
  | { readonly kind: 'NotJudged' };

/** What a mapping's schema says of one of its keys. */
export function readKey(schema: Schema, key: string, kind: SchemaKind): KeyReading {
  if (isOpaque(schema)) return { kind: 'NotJudged' };
  const properties = propertiesOf(schema);
  const declared = properties === undefined ? undefined : childOf(properties, key);
  if (declared !== undefined) return read(declared);
  // Patterns are somebody else's regular expressions: they are not run.
  if (isMapping(childOf(schema, 'patternProperties'))) return { kind: 'NotJudged' };
  const others = childOf(schema, 'additionalProperties');
  if (others !== undefined) return read(others);
  return properties !== undefined && kind === 'CustomResource' ? { kind: 'Rejected' } : { kind: 'NotJudged' };
}

/** Schema of the list's item. */
export function itemSchema(schema: Schema, index: number): Schema | undefined {
  const tuple = childOf(schema, 'prefixItems') ?? childOf(schema, 'items');
  const items = childOf(schema, 'items');
  if (isList(tuple) && index < tuple.length) return tuple[index];
  return isList(items) ? childOf(schema, 'additionalItems') : items;
}

/** What stands at a path; undefined where nothing declares it or nobody judges. */
export function schemaAt(schema: Schema, path: readonly string[]): Schema | undefined {
  let at: Schema | undefined = schema;
  for (const key of path) {
    if (at === undefined || isOpaque(at)) return undefined;
    const next: KeyReading =
      typesOf(at).includes('array') || childOf(at, 'items') !== undefined
        ? { kind: 'Declared', schema: itemSchema(at, Number(key)) ?? true }
        : readKey(at, key, 'Values');
    at = next.kind === 'Declared' ? next.schema : undefined;
  }
  return at;
}

const read = (schema: Schema): KeyReading =>
  schema === false
    ? { kind: 'Rejected' }
    : schema === true
      ? { kind: 'NotJudged' }
      : { kind: 'Declared', schema };
