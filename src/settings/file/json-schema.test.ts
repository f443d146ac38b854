import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CONFIG_SCHEMA_FILE, configJsonSchema, configSchemaText, keysAt } from './json-schema.ts';

describe('the schema for editors', () => {
  it('is committed as it is generated', () => {
    const path = join(import.meta.dirname, '../../..', CONFIG_SCHEMA_FILE);
    expect(readFileSync(path, 'utf8')).toBe(configSchemaText());
  });

  it('describes every key', () => {
    const silent = namedKeys(configJsonSchema(), '').filter(({ described }) => !described);
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it('takes a model by its name alone, and as a map', () => {
    const { properties } = JSON.parse(configSchemaText());
    const { anyOf, ...others } = properties.settings.properties.model;
    expect(Object.keys(others).toSorted()).toEqual(['default', 'description']);
    expect(anyOf.map(({ type }: { type: string }) => type)).toEqual(['string', 'object']);
  });

  it('allows no keys that the program refuses', () => {
    expect(JSON.parse(configSchemaText()).additionalProperties).toBe(false);
  });
});

it.each([
  [[], ['settings', 'workflows']],
  [
    ['workflows', 'review', 'trigger_rules', 0],
    ['action', 'status', 'user', 'branch', 'title'],
  ],
  [['workflows', 'review', 'projects', 'group/app', 'tokens'], ['gitlab']],
  [['workflows'], []],
])('at %j there can be %j', (path, expected) => {
  expect(keysAt(path)).toEqual(expected);
});

interface Named {
  readonly path: string;
  readonly described: boolean;
}

/** Keys with a fixed name; those of maps are their readers'. */
function namedKeys(node: unknown, path: string): readonly Named[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, inner]) => {
    if (key !== 'properties') return namedKeys(inner, path);
    return Object.entries(inner).flatMap(([name, schema]) => {
      const described = typeof (schema as { description?: unknown }).description === 'string';
      return [{ path: `${path}.${name}`, described }, ...namedKeys(schema, `${path}.${name}`)];
    });
  });
}
