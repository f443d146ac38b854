import { describe, expect, it } from 'vitest';
import type { Schema } from './schema.ts';
import { renderSchema } from './schema-render.ts';

const SCHEMA: Schema = {
  type: 'object',
  required: ['ref', 'level'],
  properties: {
    ref: {
      type: 'object',
      required: ['name'],
      properties: {
        kind: { type: 'string', default: 'Store', enum: ['Store', 'ClusterStore'] },
        name: { type: 'string', description: 'not shown' },
      },
    },
    level: { type: 'integer', default: 3 },
    tags: { type: 'array', items: { type: 'object', properties: { key: { type: 'string' } } } },
    extra: { 'x-kubernetes-preserve-unknown-fields': true },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
  },
};

describe('renderSchema', () => {
  it('lever 8: marks an optional field that has a default at its own line', () => {
    expect(renderSchema(SCHEMA, { optionalMarks: true })).toBe(
      [
        'ref: object (required)',
        '  kind: string (optional, unset means Store) one of [Store, ClusterStore]',
        '  name: string (required)',
        'level: integer (required) default=3',
        'tags: list of object',
        '  key: string',
        'extra: free form',
        'labels: map of string',
        '',
      ].join('\n'),
    );
  });

  it('lever 8: without it the default reads like one more thing to fill', () => {
    expect(renderSchema(SCHEMA, { optionalMarks: false })).toContain(
      '  kind: string default=Store one of [Store, ClusterStore]\n',
    );
  });

  it('is cut at the end of a line within its budget, and says so', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [`field${at}`, { type: 'string' }]),
    );
    const text = renderSchema({ type: 'object', properties }, { optionalMarks: true });
    expect(text.length).toBeLessThanOrEqual(12_000);
    expect(text.length).toBeGreaterThan(11_900);
    expect(
      text
        .split('\n')
        .slice(0, -2)
        .every((line) => /^field\d+: string$/.test(line)),
    ).toBe(true);
    expect(text).toContain('return the document unchanged');
  });

  it('goes eight levels deep and says that there is more', () => {
    const deep = Array.from({ length: 12 }).reduce<Schema>(
      (below) => ({ type: 'object', properties: { a: below } }),
      { type: 'string' },
    );
    const lines = renderSchema(deep, { optionalMarks: true }).trimEnd().split('\n');
    expect(lines).toHaveLength(9);
    expect(lines.at(-1)?.trim()).toBe('(more below)');
  });

  it('does not let a schema write lines of its own', () => {
    const schema: Schema = { properties: { a: { type: 'string', default: 'x\nb: string (required)' } } };
    expect(renderSchema(schema, { optionalMarks: true }).trimEnd().split('\n')).toHaveLength(1);
  });
});
