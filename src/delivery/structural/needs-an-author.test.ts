import { describe, expect, it } from 'vitest';
import { check } from './check.ts';
import { needsAnAuthor } from './needs-an-author.ts';
import type { Schema } from './schema.ts';

describe('needsAnAuthor', () => {
  it.each<[string, Schema, boolean]>([
    ['a string', { type: 'string' }, true],
    ['a choice of two', { enum: ['A', 'B'] }, true],
    ['a choice of one', { enum: ['A'] }, false],
    ['a constant', { const: 'A' }, false],
    ['a default', { type: 'string', default: 'A' }, false],
    ['a choice of two with a default', { enum: ['A', 'B'], default: 'A' }, false],
  ])('a required key that is %s: %s', (_, field, wanted) => {
    const schema: Schema = { type: 'object', required: ['key'], properties: { key: field } };
    const findings = check({}, schema, { kind: 'Values' });
    expect(needsAnAuthor(findings, schema)).toEqual(wanted ? [['key']] : []);
  });
});
