import { z } from 'zod';

/** A structural schema as CustomResourceDefinitions take it: OpenAPI v3 without references and unions. */
export interface Structural {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Structural>>;
  readonly required?: readonly string[];
  readonly items?: Structural;
  readonly additionalProperties?: Structural;
  readonly [keyword: string]: unknown;
}

type Node = Readonly<Record<string, unknown>>;

const KEPT = [
  'description',
  'type',
  'format',
  'default',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'maxProperties',
  'required',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
];
const CONVERTED = ['const', 'allOf', 'properties', 'items', 'additionalProperties'];
/** Without a counterpart: every JSON object has string keys, and the dialect is given by the CRD. */
const DROPPED = ['$schema', 'propertyNames'];

/**
 * The structural schema of a zod schema, as a user types it: fields with a default are optional.
 * Throws with the place of anything that has no structural form (unions, records of unions, references).
 */
export function structural(schema: z.ZodType, where: string): Structural {
  return convert(z.toJSONSchema(schema, { io: 'input', reused: 'inline' }), where);
}

function convert(node: Node, where: string): Structural {
  if (node['x-kubernetes-int-or-string'] === true) return intOrString(node, where);
  for (const key of Object.keys(node)) {
    if (![...KEPT, ...CONVERTED, ...DROPPED].includes(key)) {
      throw new Error(`${where}: "${key}" has no structural form; describe the field without it`);
    }
  }
  if (typeof node['type'] !== 'string') {
    throw new Error(
      `${where}: a structural schema needs one type, found ${JSON.stringify(node['type'] ?? 'none')}`,
    );
  }
  const result: Record<string, unknown> = {};
  for (const key of KEPT) if (node[key] !== undefined) result[key] = node[key];
  if (Array.isArray(result['required']) && result['required'].length === 0) delete result['required'];
  // The API server takes such a schema and then refuses every object.
  if (node['format'] === 'int32' && Number(node['maximum']) > 2_147_483_647) {
    throw new Error(`${where}: a maximum of at most 2147483647 is needed for format int32`);
  }
  // The format says it already, in the API server's own words.
  if (node['format'] === 'date-time') delete result['pattern'];
  if (node['const'] !== undefined) result['enum'] = [node['const']];
  if (Array.isArray(node['allOf'])) result['allOf'] = node['allOf'].map((part) => patternOnly(part, where));
  if (node['properties'] !== undefined) {
    const fields = Object.entries(nodeAt(node['properties'], where));
    result['properties'] = Object.fromEntries(
      fields.map(([name, field]) => [name, convert(nodeAt(field, `${where}.${name}`), `${where}.${name}`)]),
    );
  }
  if (node['items'] !== undefined) result['items'] = convert(nodeAt(node['items'], where), `${where}[]`);
  if (node['additionalProperties'] !== undefined) {
    result['additionalProperties'] = convert(nodeAt(node['additionalProperties'], where), `${where}{}`);
  }
  if (isNode(result['default'])) result['default'] = filled(result['default'], result);
  return result;
}

/** A default with the defaults of its fields: the API server checks rules on a default before it fills it. */
function filled(value: Node, schema: Structural): Node {
  const defaults = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    field.default === undefined ? [] : [[name, field.default] as const],
  );
  return { ...Object.fromEntries(defaults), ...value };
}

/** Kubernetes knows exactly this union; what holds for its string or its number stands beside it. */
function intOrString(node: Node, where: string): Structural {
  const branches = Array.isArray(node['anyOf']) ? node['anyOf'].map((branch) => nodeAt(branch, where)) : [];
  const string = branches.find((branch) => branch['type'] === 'string');
  const integer = branches.find((branch) => branch['type'] === 'integer');
  if (string === undefined || integer === undefined || branches.length !== 2) {
    throw new Error(`${where}: x-kubernetes-int-or-string needs a union of one integer and one string`);
  }
  return {
    ...(node['description'] !== undefined && { description: String(node['description']) }),
    ...(node['default'] !== undefined && { default: node['default'] }),
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    minimum: integer['minimum'],
    maxLength: string['maxLength'],
    pattern: string['pattern'],
    'x-kubernetes-int-or-string': true,
  };
}

function patternOnly(part: unknown, where: string): Node {
  const node = nodeAt(part, where);
  if (Object.keys(node).join() !== 'pattern') throw new Error(`${where}: allOf may hold patterns only`);
  return node;
}

function nodeAt(value: unknown, where: string): Node {
  if (!isNode(value)) throw new Error(`${where}: a schema is expected, found ${JSON.stringify(value)}`);
  return value;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
