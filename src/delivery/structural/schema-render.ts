import { enumOf, isOpaque, itemSchema, propertiesOf, requiredOf, type Schema, typesOf } from './schema.ts';
import { childOf, isMapping, shown, type Value } from './value.ts';

export interface RenderOptions {
  /** Lever 8: an optional field with a default is marked as one that need not be filled. */
  readonly optionalMarks: boolean;
  readonly maxChars?: number;
}

const MAX_CHARS = 12_000;
const MAX_DEPTH = 8;
const CUT =
  '(The schema goes on. When the field that you need is not shown, return the document unchanged and say so in the notes.)\n';

/**
 * A schema as a model reads it: one field a line, children indented, no descriptions. Cut at a line's end when it is
 * longer than the budget; whoever validates has the whole schema.
 */
export function renderSchema(schema: Schema, { optionalMarks, maxChars = MAX_CHARS }: RenderOptions): string {
  const lines: string[] = [];
  let room = maxChars - CUT.length;
  for (const line of fieldLines(schema, 0, optionalMarks)) {
    room -= line.length + 1;
    if (room < 0) return `${lines.join('\n')}\n${CUT}`;
    lines.push(line);
  }
  return lines.length === 0 ? '(free form)\n' : `${lines.join('\n')}\n`;
}

function* fieldLines(schema: Schema | undefined, depth: number, marks: boolean): Generator<string> {
  if (schema === undefined || isOpaque(schema)) return;
  const required = new Set(requiredOf(schema));
  const indent = '  '.repeat(depth);
  for (const [key, field] of Object.entries(propertiesOf(schema) ?? {})) {
    yield `${indent}${[`${key}: ${typeName(field)}`, ...notes(field, required.has(key), marks)].join(' ')}`;
    if (depth + 1 < MAX_DEPTH) yield* fieldLines(belowOf(field), depth + 1, marks);
    else if (Object.keys(propertiesOf(belowOf(field)) ?? {}).length > 0) yield `${indent}  (more below)`;
  }
}

/** Where the fields below a field are declared: in itself, in its list's items, in its map's values. */
function belowOf(field: Schema): Schema | undefined {
  if (propertiesOf(field) !== undefined) return field;
  const item = itemSchema(field, 0) ?? childOf(field, 'additionalProperties');
  return isMapping(item) ? belowOf(item) : undefined;
}

function typeName(field: Schema): string {
  if (isOpaque(field)) return 'free form';
  const types = typesOf(field);
  if (types.includes('array')) return `list of ${typeName(itemSchema(field, 0) ?? {})}`;
  const values = childOf(field, 'additionalProperties');
  if (isMapping(values) && propertiesOf(field) === undefined) return `map of ${typeName(values)}`;
  if (types.length === 0) return 'any';
  if (types.includes('object') && propertiesOf(field) === undefined) return 'object, free form';
  return types.join(' or ');
}

/** The category that the rule of the prompt names stands at the line that it is about. */
function notes(field: Schema, required: boolean, marks: boolean): readonly string[] {
  const fallback: Value | undefined = childOf(field, 'default');
  const members = enumOf(field);
  const chosen = childOf(field, 'const');
  return [
    ...(required ? ['(required)'] : []),
    ...(fallback === undefined
      ? []
      : required || !marks
        ? [`default=${word(fallback)}`]
        : [`(optional, unset means ${word(fallback)})`]),
    ...(chosen === undefined ? [] : [`always ${word(chosen)}`]),
    ...(members === undefined ? [] : [`one of [${members.map(word).join(', ')}]`]),
  ];
}

const word = (value: Value): string =>
  typeof value === 'string' ? value.replaceAll(/\s+/g, ' ') : shown(value);
