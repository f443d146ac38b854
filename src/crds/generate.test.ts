import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DEFINITIONS } from './definitions.ts';
import { generatedFiles } from './generate.ts';
import { customResourceDefinition, objectSchema } from './manifest.ts';
import type { Structural } from './structural.ts';

const ROOT = join(import.meta.dirname, '../..');
const KINDS = DEFINITIONS.map((definition) => [definition.kind.kind, definition] as const);

describe('generated files', () => {
  it.each(generatedFiles().map((file) => [file.path, file.content]))(
    '%s is committed as generated',
    async (path, content) => {
      expect(await readFile(join(ROOT, path), 'utf8')).toBe(content);
    },
  );

  it('are the same bytes the second time', () => {
    expect(generatedFiles()).toEqual(generatedFiles());
  });

  it('hold YAML that reads back as the CRD', () => {
    const files = generatedFiles();
    for (const definition of DEFINITIONS) {
      const file = files.find(({ path }) => path.endsWith(`_${definition.kind.plural}.yaml`));
      expect(parse(file?.content ?? '')).toEqual(
        JSON.parse(JSON.stringify(customResourceDefinition(definition))),
      );
    }
  });
});

describe.each(KINDS)('%s', (_, definition) => {
  const nodes = walk(objectSchema(definition), '');
  const ours = nodes.filter(({ path }) => path.startsWith('.spec') || path.startsWith('.status'));

  it('describes every field', () => {
    const silent = nodes.filter(
      ({ path, field, schema }) => field && path !== '.metadata' && !schema.description?.trim(),
    );
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it('describes every field in a sentence of its own, with a full stop', () => {
    const ragged = ours.filter(({ field, schema }) => field && !/[.”")}]$/.test(schema.description ?? ''));
    expect(ragged.map(({ path, schema }) => `${path}: ${schema.description}`)).toEqual([]);
  });

  it('bounds every text, list and map, so that rules stay cheap and objects small', () => {
    const unbounded = ours.filter(({ schema }) => {
      if (schema.type === 'array') return schema['maxItems'] === undefined;
      if (schema.additionalProperties !== undefined) return schema['maxProperties'] === undefined;
      return schema.type === 'string' && schema.enum === undefined && schema['maxLength'] === undefined;
    });
    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });

  it('asks for nothing in status that a first status write would have to know', () => {
    expect(objectSchema(definition).properties?.['status']?.required).toBeUndefined();
  });

  it('has no default in status, which the API server would write for the operator', () => {
    const filled = ours.filter(
      ({ path, schema }) => path.startsWith('.status') && schema.default !== undefined,
    );
    expect(filled.map(({ path }) => path)).toEqual([]);
  });

  it('has a message on every rule that names the field', () => {
    for (const { path, schema } of nodes) {
      const rules = schema['x-kubernetes-validations'];
      for (const rule of Array.isArray(rules) ? rules : []) {
        const subject = String(rule.fieldPath ?? path.replaceAll('[]', ''))
          .split('.')
          .at(-1);
        expect(rule.message, `${path}: ${rule.rule}`).toContain(subject);
      }
    }
  });

  it('shows only columns and selects only fields that exist', () => {
    const paths = new Set(nodes.map(({ path }) => path));
    for (const { jsonPath } of definition.columns) {
      const plain = jsonPath.replace(/\[\?\(@\.type=="(\w+)"\)\]/, '[]');
      expect(plain.startsWith('.metadata.') || paths.has(plain), jsonPath).toBe(true);
    }
    for (const path of definition.selectableFields) expect(paths).toContain(path);
    expect(definition.selectableFields.length).toBeLessThanOrEqual(8);
  });

  it('keeps no unknown fields', () => {
    expect(JSON.stringify(objectSchema(definition))).not.toContain('preserve-unknown-fields');
  });
});

it('a status of an AgentRun stays below 64 KiB whatever is in it', () => {
  const agentRun = DEFINITIONS.find(({ kind }) => kind.kind === 'AgentRun');
  const status = agentRun && objectSchema(agentRun).properties?.['status'];
  expect(status && largest(status)).toBeLessThanOrEqual(64 * 1024);
});

interface Place {
  readonly path: string;
  /** A named field, not the items of a list or the values of a map. */
  readonly field: boolean;
  readonly schema: Structural;
}

function walk(schema: Structural, path: string, field = false): readonly Place[] {
  const named = Object.entries(schema.properties ?? {});
  return [
    { path, field, schema },
    ...named.flatMap(([name, inner]) => walk(inner, `${path}.${name}`, true)),
    ...(schema.items === undefined ? [] : walk(schema.items, `${path}[]`)),
    ...(schema.additionalProperties === undefined ? [] : walk(schema.additionalProperties, `${path}{}`)),
  ];
}

/** Bytes of the largest JSON that the schema lets through: 4 a character, 1 where a pattern keeps it to ASCII. */
function largest(schema: Structural): number {
  if (schema.enum !== undefined) return Math.max(...schema.enum.map((value) => JSON.stringify(value).length));
  if (schema.type === 'array') return Number(schema['maxItems']) * (largest(schema.items ?? {}) + 1) + 2;
  if (schema.type === 'object') {
    const fields = Object.entries(schema.properties ?? {});
    return fields.reduce((sum, [name, field]) => sum + name.length + 4 + largest(field), 2);
  }
  if (schema.type !== 'string') return 20;
  const ascii = schema['pattern'] !== undefined || schema['format'] !== undefined;
  return Number(schema['maxLength']) * (ascii ? 1 : 4) + 2;
}
