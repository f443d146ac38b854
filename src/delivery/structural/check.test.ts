import { describe, expect, it } from 'vitest';
import { check, type FindingKind } from './check.ts';
import type { Schema, SchemaKind } from './schema.ts';
import { dotted, type Value } from './value.ts';

const found = (
  document: Value,
  schema: Schema,
  kind: SchemaKind = 'Values',
  defaults?: Value,
): readonly (readonly [string, FindingKind])[] =>
  check(document, schema, defaults === undefined ? { kind } : { kind, defaults }).map((one) => [
    dotted(one.path),
    one.kind,
  ]);

const properties = (of: { readonly [key: string]: Schema }): Schema => ({ type: 'object', properties: of });
const closed = (of: { readonly [key: string]: Schema }): Schema => ({
  type: 'object',
  properties: of,
  additionalProperties: false,
});

describe('check', () => {
  it.each<{
    name: string;
    document: Value;
    schema: Schema;
    kind?: SchemaKind;
    wanted: readonly (readonly [string, FindingKind])[];
  }>([
    {
      name: 'an unknown key is rejected where the schema is closed',
      document: { a: 1, b: 2 },
      schema: closed({ a: {} }),
      wanted: [['b', 'Rejected']],
    },
    {
      name: 'an unknown key of a custom resource is rejected, since the API server prunes it',
      document: { spec: { a: 1, b: 2 } },
      schema: properties({ spec: properties({ a: {} }) }),
      kind: 'CustomResource',
      wanted: [['spec.b', 'Rejected']],
    },
    {
      name: 'an unknown value of a chart is accepted where the schema is open, since helm accepts it',
      document: { spec: { a: 1, b: 2 } },
      schema: properties({ spec: properties({ a: {} }) }),
      wanted: [],
    },
    {
      name: 'identity at the root of a custom resource is not judged, and is below it',
      document: { apiVersion: 'x/v1', kind: 'X', metadata: {}, spec: { kind: 'Y' } },
      schema: properties({ spec: properties({ name: {} }) }),
      kind: 'CustomResource',
      wanted: [['spec.kind', 'Rejected']],
    },
    {
      name: 'nothing is judged below fields that are preserved',
      document: { spec: { a: { b: 1 } } },
      schema: properties({
        spec: { 'x-kubernetes-preserve-unknown-fields': true, ...(closed({}) as object) },
      }),
      kind: 'CustomResource',
      wanted: [],
    },
    ...['oneOf', 'anyOf', 'allOf', 'not', '$ref', 'if'].map((word) => ({
      name: `nothing is judged below ${word}`,
      document: { a: { b: 1 } },
      schema: properties({
        a: { ...(closed({}) as object), [word]: word === '$ref' ? '#/definitions/a' : [] },
      }),
      wanted: [],
    })),
    {
      name: 'a schema for other keys is walked',
      document: { a: { any: 'text' } },
      schema: properties({ a: { type: 'object', additionalProperties: { type: 'integer' } } }),
      wanted: [['a.any', 'WrongType']],
    },
    {
      name: 'keys beside patterns are not judged',
      document: { a: 1 },
      schema: { type: 'object', patternProperties: { '^x': {} }, additionalProperties: false },
      wanted: [],
    },
    {
      name: 'false rejects',
      document: { a: 1 },
      schema: properties({ a: false }),
      wanted: [['a', 'Rejected']],
    },
    { name: 'true accepts', document: { a: 1 }, schema: properties({ a: true }), wanted: [] },
    {
      name: 'items of a list are judged by index',
      document: { a: [{ b: 1 }, { c: 1 }] },
      schema: properties({ a: { type: 'array', items: closed({ b: {} }) } }),
      wanted: [['a.1.c', 'Rejected']],
    },
    {
      name: 'items of a tuple have a schema each',
      document: { a: [1, 'x', 'y'] },
      schema: properties({ a: { items: [{ type: 'integer' }, { type: 'integer' }] } }),
      wanted: [['a.1', 'WrongType']],
    },
    {
      name: 'what is required and not there is missing',
      document: { a: {} },
      schema: properties({ a: { type: 'object', required: ['b'], properties: { b: { type: 'string' } } } }),
      wanted: [['a.b', 'Missing']],
    },
    {
      name: 'a required null is there',
      document: { a: { b: null } },
      schema: properties({ a: { type: 'object', required: ['b'] } }),
      wanted: [],
    },
    {
      name: 'integer and number are told apart only by a fraction',
      document: { a: 1, b: 1.5, c: 2n, d: 1 },
      schema: properties({
        a: { type: 'number' },
        b: { type: 'integer' },
        c: { type: 'integer' },
        d: { type: 'integer' },
      }),
      wanted: [['b', 'WrongType']],
    },
    {
      name: 'plain contradictions of type',
      document: { a: 'x', b: 1, c: true, d: [], e: {}, f: 'x' },
      schema: properties({
        a: { type: 'integer' },
        b: { type: 'string' },
        c: { type: ['string', 'boolean'] },
        d: { type: 'object' },
        e: { type: 'array' },
        f: { type: 'unheard-of' },
      }),
      wanted: [
        ['a', 'WrongType'],
        ['b', 'WrongType'],
        ['d', 'WrongType'],
        ['e', 'WrongType'],
      ],
    },
    {
      name: 'a word that is none of those allowed',
      document: { a: 'Z', b: 'X' },
      schema: properties({ a: { enum: ['X', 'Y'] }, b: { enum: ['X', 'Y'] } }),
      wanted: [['a', 'WrongType']],
    },
    {
      name: 'a key called __proto__ or constructor is a key like others',
      document: JSON.parse('{"__proto__": 1, "constructor": 2}'),
      schema: closed({}),
      wanted: [
        ['__proto__', 'Rejected'],
        ['constructor', 'Rejected'],
      ],
    },
  ])('$name', ({ document, schema, kind, wanted }) => {
    expect(found(document, schema, kind)).toEqual(wanted);
  });

  it('what the chart itself sets is not missing', () => {
    const schema: Schema = { type: 'object', required: ['a', 'b'], properties: { a: {}, b: {} } };
    expect(found({}, schema, 'Values', { a: 1 })).toEqual([['b', 'Missing']]);
  });

  it('ends on schemas that refer to themselves', () => {
    const schema: Schema = { properties: { a: { $ref: '#' } } };
    expect(found({ a: { a: { a: 1 } } }, schema)).toEqual([]);
  });

  it('sorts by path', () => {
    expect(found({ z: 1, a: 1, m: 1 }, closed({})).map(([path]) => path)).toEqual(['a', 'm', 'z']);
  });
});
