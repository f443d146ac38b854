import { expect, test } from 'vitest';
import { declare } from './declaration.ts';

const declared = (parameters: Readonly<Record<string, unknown>>) =>
  declare({ name: 't', description: 'd', parameters }).parametersJsonSchema;

test('keywords that the API does not take are dropped at every depth, names of properties never', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      pattern: { type: 'string', pattern: '^a', minLength: 1, maxLength: 9, default: 'a', description: 'x' },
      list: {
        type: 'array',
        items: { type: 'number', multipleOf: 2, minimum: 1 },
        minItems: 1,
        uniqueItems: true,
      },
      map: {
        type: 'object',
        propertyNames: { type: 'string' },
        additionalProperties: { type: 'string', not: {} },
      },
      choice: { anyOf: [{ const: 1 }, { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 5 }] },
    },
    required: ['pattern'],
    additionalProperties: false,
  };
  expect(declared(schema)).toEqual({
    type: 'object',
    properties: {
      pattern: { type: 'string', description: 'x' },
      list: { type: 'array', items: { type: 'number', minimum: 1 }, minItems: 1 },
      map: { type: 'object', additionalProperties: { type: 'string' } },
      choice: { anyOf: [{ enum: [1] }, { type: 'integer', minimum: 0, maximum: 5 }] },
    },
    required: ['pattern'],
    additionalProperties: false,
  });
});

test('recursive schemas keep their definitions', () => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
  const schema = { type: 'object', properties: { root: { $ref: '#/$defs/node' } }, $defs: { node } };
  expect(declared(schema)).toEqual(schema);
});

test('a tool without parameters declares none: an object without properties is refused', () => {
  expect(declare({ name: 't', description: 'd', parameters: { type: 'object', properties: {} } })).toEqual({
    name: 't',
    description: 'd',
  });
});
