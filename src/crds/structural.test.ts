import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { text } from './schema.ts';
import { structural } from './structural.ts';

describe('structural', () => {
  it('asks only for fields without a default', () => {
    const schema = z.object({
      given: text(5),
      filled: z.int().min(0).max(9).default(3),
      absent: z.boolean().optional(),
    });
    expect(structural(schema, 'here')).toEqual({
      type: 'object',
      required: ['given'],
      properties: {
        given: { type: 'string', maxLength: 5 },
        filled: { type: 'integer', minimum: 0, maximum: 9, default: 3 },
        absent: { type: 'boolean' },
      },
    });
  });

  it('leaves out an empty list of required fields, which the API server refuses', () => {
    expect(structural(z.object({ a: z.boolean().optional() }), 'here')).not.toHaveProperty('required');
  });

  it('fills the default of an object with the defaults of its fields, at every depth', () => {
    const inner = z.object({ kind: z.enum(['A', 'B']).default('A'), other: text(1).optional() }).prefault({});
    const schema = z.object({ inner, on: z.boolean().default(true) }).prefault({ on: false });
    expect(structural(schema, 'here').default).toEqual({ inner: { kind: 'A' }, on: false });
  });

  it('turns a literal into an enumeration of one', () => {
    expect(structural(z.literal(true), 'here')).toEqual({ type: 'boolean', enum: [true] });
  });

  it('keeps the format of a time and drops the expression behind it', () => {
    expect(structural(z.iso.datetime({ offset: true }), 'here')).toEqual({
      type: 'string',
      format: 'date-time',
    });
  });

  it('keeps two expressions as allOf', () => {
    expect(structural(z.string().regex(/^a/).regex(/b$/), 'here')).toEqual({
      type: 'string',
      allOf: [{ pattern: '^a' }, { pattern: 'b$' }],
    });
  });

  it('writes a quantity as the one union that Kubernetes knows', () => {
    const quantity = z
      .union([z.int().min(0), text(9).regex(/^[0-9]+$/)])
      .meta({ 'x-kubernetes-int-or-string': true })
      .describe('shown');
    expect(structural(quantity, 'here')).toEqual({
      description: 'shown',
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      minimum: 0,
      maxLength: 9,
      pattern: '^[0-9]+$',
      'x-kubernetes-int-or-string': true,
    });
  });

  it.each([
    [
      'a union',
      z.object({ a: z.union([z.string(), z.boolean()]) }),
      /^here\.a: a structural schema needs one type, found \["string","boolean"\]/,
    ],
    [
      'null',
      z.object({ a: z.array(z.string().nullable()) }),
      /^here\.a\[\]: a structural schema needs one type, found \["string","null"\]/,
    ],
    [
      'a union of objects',
      z.object({ a: z.union([z.object({ b: z.string() }), z.object({ c: z.string() })]) }),
      /^here\.a: "anyOf" has no structural form/,
    ],
    [
      'anything at all',
      z.object({ a: z.unknown() }),
      /^here\.a: a structural schema needs one type, found "none"/,
    ],
    [
      'a 32-bit number without a maximum',
      z.int().meta({ format: 'int32' }),
      /^here: a maximum of at most 2147483647/,
    ],
    ['a strict object', z.strictObject({}), /^here: a schema is expected, found false/],
    [
      'an int-or-string of something else',
      z.union([z.int(), z.boolean()]).meta({ 'x-kubernetes-int-or-string': true }),
      /^here: x-kubernetes-int-or-string needs/,
    ],
  ])('refuses %s and says where it stands', (_, schema, message) => {
    expect(() => structural(schema, 'here')).toThrow(message);
  });
});
