import type { Definition } from './definitions.ts';
import { objectSchema } from './manifest.ts';
import { API_VERSION } from './meta.ts';
import type { CelRule } from './schema.ts';
import type { Structural } from './structural.ts';

interface Row {
  readonly path: string;
  readonly required: boolean;
  readonly schema: Structural;
}

/** The reference page of a kind, Markdown: a table of every field of spec and status, and the rules. */
export function referencePage(definition: Definition): string {
  const schema = objectSchema(definition);
  const { kind } = definition.kind;
  const section = (name: 'spec' | 'status', intro: string): string[] => [
    `## ${name}`,
    '',
    intro,
    '',
    ...table(rows(schema.properties?.[name] ?? {}, name)),
    '',
  ];
  const rules = messages(schema);
  return [
    `# ${kind}`,
    '',
    definition.description,
    '',
    `\`apiVersion: ${API_VERSION}\`, \`kind: ${kind}\`; \`kubectl get ${definition.shortName}\`. ` +
      `Field selectors: ${definition.selectableFields.map((path) => `\`${path.slice(1)}\``).join(', ')}.`,
    '',
    ...section('spec', definition.specDescription),
    ...section('status', definition.statusDescription),
    ...(rules.length > 0
      ? ['## Rules', '', 'The API server refuses an object, with these words:', '', ...rules, '']
      : []),
  ].join('\n');
}

function rows(schema: Structural, path: string): readonly Row[] {
  const fields = Object.entries(schema.properties ?? {});
  return fields.flatMap(([name, field]) => {
    const here = `${path}.${name}`;
    const inner = field.items ?? field.additionalProperties;
    const below = field.items === undefined ? here : `${here}[]`;
    return [
      { path: here, required: schema.required?.includes(name) ?? false, schema: field },
      ...rows(inner ?? field, below),
    ];
  });
}

function table(content: readonly Row[]): readonly string[] {
  return [
    '| field | type | default | meaning |',
    '|---|---|---|---|',
    ...content.map(
      ({ path, required, schema }) =>
        `| \`${path}\` | ${cell(typeOf(schema))}${required ? ', required' : ''} | ${defaultOf(schema)} | ${cell(schema.description ?? '')} |`,
    ),
  ];
}

function typeOf(schema: Structural): string {
  if (schema['x-kubernetes-int-or-string'] === true) return 'quantity';
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties !== undefined) return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  return schema['format'] === 'date-time' ? 'time' : (schema.type ?? '');
}

function defaultOf({ default: value }: Structural): string {
  // The fields of an object have rows of their own.
  const shown = value !== undefined && (typeof value !== 'object' || Array.isArray(value));
  return shown ? `\`${cell(JSON.stringify(value))}\`` : '';
}

function messages(schema: Structural): readonly string[] {
  const own = schema['x-kubernetes-validations'];
  const rules: readonly CelRule[] = Array.isArray(own) ? own : [];
  const children = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  return [
    ...rules.map(({ message }) => `- ${message}`),
    ...children.flatMap((child) => (child === undefined ? [] : messages(child))),
  ];
}

/** `|` ends a cell, and `<` would start HTML. */
const cell = (value: string): string => value.replaceAll('|', '\\|').replaceAll('<', '&lt;');
