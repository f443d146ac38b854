import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { cel, immutable, listMap, map, text } from './schema.ts';
import { clip, MESSAGE_MAX } from './shapes.ts';

const HUMMINGBIRDS = '🐦'.repeat(4);

describe('text', () => {
  it('counts code points, as the API server does, not UTF-16 units', () => {
    expect(text(4).safeParse(HUMMINGBIRDS).success).toBe(true);
    expect(text(3).safeParse(HUMMINGBIRDS).success).toBe(false);
    expect(text(8, 5).safeParse(HUMMINGBIRDS).success).toBe(false);
  });

  it('says its bounds to the generator', () => {
    expect(z.toJSONSchema(text(8, 2))).toMatchObject({ type: 'string', minLength: 2, maxLength: 8 });
  });
});

describe('clip', () => {
  it('leaves a text alone that fits', () => {
    expect(clip(HUMMINGBIRDS, 4)).toBe(HUMMINGBIRDS);
  });

  it('cuts between characters, marks the cut, and fits', () => {
    expect(clip(HUMMINGBIRDS, 3)).toBe('🐦🐦…');
    expect(clip('a'.repeat(5000))).toHaveLength(MESSAGE_MAX);
    expect(text(3).safeParse(clip(HUMMINGBIRDS, 3)).success).toBe(true);
  });

  it('does not read all of a huge text', () => {
    expect([...clip('🐦'.repeat(1_000_000), 10)]).toHaveLength(10);
  });
});

describe('annotations', () => {
  it('keep the description and the rules that were there before', () => {
    const first = { rule: 'self.a', message: 'a' };
    const second = { rule: 'self.b', message: 'b' };
    const schema = cel(cel(z.object({}).describe('shown'), first), second);
    expect(z.toJSONSchema(schema)).toMatchObject({
      description: 'shown',
      'x-kubernetes-validations': [first, second],
    });
  });

  it('leave the schema that they were given as it was', () => {
    const before = z.object({});
    cel(before, { rule: 'self.a', message: 'a' });
    expect(before.meta()).toBeUndefined();
  });

  it('survive optional and description', () => {
    const list = listMap(z.array(z.object({ name: z.string() })), 'name')
      .optional()
      .describe('shown');
    expect(z.toJSONSchema(list)).toMatchObject({
      description: 'shown',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    });
  });
});

it('map refuses one entry too many', () => {
  expect(map(z.string(), 1).safeParse({ a: '' }).success).toBe(true);
  expect(map(z.string(), 1).safeParse({ a: '', b: '' }).success).toBe(false);
});

it('immutable reports at the field and says what to do instead', () => {
  expect(immutable('spec', ['sha'], 'create another one')).toEqual([
    expect.objectContaining({
      message: 'spec.sha cannot be changed: create another one',
      fieldPath: '.sha',
      reason: 'FieldValueForbidden',
    }),
  ]);
});
