import type { ToolDefinition } from '../port.ts';
import { asObject } from './answer.ts';
import type { FunctionDeclaration } from './wire.ts';

/**
 * A tool as Gemini takes it. `parametersJsonSchema` takes JSON Schema, but only the keywords below; others make
 * the request invalid on some endpoints. Dropped are `$schema`, `default`, `examples`, `pattern`, `minLength`,
 * `maxLength`, `multipleOf`, `uniqueItems`, `propertyNames`, `not`, `if` and their kind: the tool's own
 * validation still holds the arguments to them, and its error tells the model.
 */
export function declare({ name, description, parameters }: ToolDefinition): FunctionDeclaration {
  const hasParameters = Object.keys(asObject(parameters['properties']) ?? {}).length > 0;
  return {
    name,
    description,
    ...(hasParameters && { parametersJsonSchema: { ...geminiSchema(parameters), type: 'object' } }),
  };
}

const PLAIN_KEYWORDS = new Set([
  '$id',
  '$ref',
  '$anchor',
  'type',
  'format',
  'title',
  'description',
  'enum',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'required',
  'propertyOrdering',
]);
const MAP_KEYWORDS = new Set(['properties', '$defs']);
const LIST_KEYWORDS = new Set(['anyOf', 'oneOf', 'prefixItems']);
const SCHEMA_KEYWORDS = new Set(['items', 'additionalProperties']);

type Schema = Readonly<Record<string, unknown>>;

/** JSON Schema in the keywords that the API takes. */
export function geminiSchema(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).flatMap(([keyword, value]) => translate(keyword, value)));
}

function translate(keyword: string, value: unknown): readonly (readonly [string, unknown])[] {
  if (PLAIN_KEYWORDS.has(keyword)) return [[keyword, value]];
  if (MAP_KEYWORDS.has(keyword)) {
    const entries = Object.entries(asObject(value) ?? {});
    return [[keyword, Object.fromEntries(entries.map(([name, item]) => [name, nested(item)]))]];
  }
  if (LIST_KEYWORDS.has(keyword)) return [[keyword, Array.isArray(value) ? value.map(nested) : []]];
  if (SCHEMA_KEYWORDS.has(keyword)) return [[keyword, nested(value)]];
  return renamed(keyword, value);
}

/** Keywords that Gemini can be told in other words. Exclusive bounds become inclusive: wider, never narrower. */
function renamed(keyword: string, value: unknown): readonly (readonly [string, unknown])[] {
  switch (keyword) {
    case 'const':
      return [['enum', [value]]];
    case 'exclusiveMinimum':
      return [['minimum', value]];
    case 'exclusiveMaximum':
      return [['maximum', value]];
    case 'definitions':
      return translate('$defs', value);
    default:
      return [];
  }
}

/** `true` and `false` are schemas as well. */
function nested(value: unknown): unknown {
  const schema = asObject(value);
  return schema === undefined ? value : geminiSchema(schema);
}
