import {
  enumOf,
  isOpaque,
  itemSchema,
  propertiesOf,
  readKey,
  requiredOf,
  type Schema,
  type SchemaKind,
  typesOf,
} from './schema.ts';
import {
  childOf,
  dotted,
  equals,
  isInteger,
  isList,
  isMapping,
  type Mapping,
  type Path,
  shown,
  type Value,
} from './value.ts';

export interface Finding {
  readonly path: Path;
  readonly kind: FindingKind;
  /** One sentence without a subject. */
  readonly detail: string;
}

export type FindingKind =
  /** The schema does not know the key. */
  | 'Rejected'
  /** The schema wants a key that is not there. */
  | 'Missing'
  /** A value that plainly contradicts the schema's type or list of values. */
  | 'WrongType';

export interface CheckOptions {
  readonly kind: SchemaKind;
  /** What applies where the document says nothing, as a chart's own values: what they have is not missing. */
  readonly defaults?: Value;
}

/** What the schema has against the document, sorted by path. Empty is no promise: not everything is judged. */
export function check(document: Value, schema: Schema, options: CheckOptions): readonly Finding[] {
  const findings: Finding[] = [];
  walk(document, schema, [], options.defaults, options, findings);
  return findings.toSorted((a, b) => (dotted(a.path) < dotted(b.path) ? -1 : 1));
}

function walk(
  value: Value,
  schema: Schema,
  path: Path,
  defaults: Value | undefined,
  options: CheckOptions,
  findings: Finding[],
): void {
  if (isOpaque(schema)) return;
  const contradiction = contradictionOf(value, schema);
  if (contradiction !== undefined) {
    findings.push({ path, kind: 'WrongType', detail: contradiction });
  } else if (isMapping(value)) {
    walkMapping(value, schema, path, defaults, options, findings);
  } else if (isList(value)) {
    for (const [index, item] of value.entries()) {
      const of = itemSchema(schema, index);
      if (of !== undefined) walk(item, of, [...path, String(index)], undefined, options, findings);
    }
  }
}

function walkMapping(
  value: Mapping,
  schema: Schema,
  path: Path,
  defaults: Value | undefined,
  options: CheckOptions,
  findings: Finding[],
): void {
  const judged = (key: string) => options.kind === 'Values' || path.length > 0 || !IDENTITY.has(key);
  for (const [key, child] of Object.entries(value).filter(([name]) => judged(name))) {
    const reading = readKey(schema, key, options.kind);
    if (reading.kind === 'Rejected')
      findings.push({ path: [...path, key], kind: 'Rejected', detail: 'is not a field of the new schema' });
    else if (reading.kind === 'Declared')
      walk(child, reading.schema, [...path, key], childOf(defaults, key), options, findings);
  }
  for (const key of requiredOf(schema).filter(judged)) {
    if (childOf(value, key) !== undefined || childOf(defaults, key) !== undefined) continue;
    const types = typesOf(childOf(propertiesOf(schema) ?? {}, key)).join(' or ');
    const detail = `is required${types === '' ? '' : ` (${types})`} and not there`;
    findings.push({ path: [...path, key], kind: 'Missing', detail });
  }
}

/** Of every custom resource; the schema of a version does not describe them. */
const IDENTITY = new Set(['apiVersion', 'kind', 'metadata']);

function contradictionOf(value: Value, schema: Schema): string | undefined {
  // Helm takes it for "not set", and the API server drops it or has it declared nullable.
  if (value === null) return undefined;
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => fits(value, type)))
    return `has to be ${types.join(' or ')}, and is ${shown(value)}`;
  const members = enumOf(schema);
  if (
    members !== undefined &&
    !isMapping(value) &&
    !isList(value) &&
    !members.some((one) => equals(one, value))
  )
    return `has to be one of ${members.map(shown).join(', ')}, and is ${shown(value)}`;
  return undefined;
}

/** A type that nobody knows fits. */
export function fits(value: Value, type: string): boolean {
  switch (type) {
    case 'object':
      return isMapping(value);
    case 'array':
      return isList(value);
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return isInteger(value);
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint';
    case 'null':
      return value === null;
    default:
      return true;
  }
}
