import { describe, expect, it } from 'vitest';
import type { Schema } from './schema.ts';
import { vacancies, vacancyLines } from './vacancies.ts';
import type { Value } from './value.ts';

const lines = (values: Value, schema: Schema) => vacancyLines(vacancies(values, schema));
const section = (properties: { readonly [key: string]: Schema }): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
});

describe('vacancies', () => {
  it('lever 7: names the free key beside a refused one, and says where there is none', () => {
    const schema = section({
      server: section({
        web: section({ listenPort: { type: 'integer' }, host: { type: 'string' }, tls: { type: 'boolean' } }),
      }),
    });
    const values = { server: { mode: 'fast', wait: true, web: { port: 8080, host: 'a', tls: true } } };
    expect(lines(values, schema)).toBe(
      [
        '- server.mode -> nothing free beside it\n',
        '- server.wait -> nothing free beside it\n',
        '- server.web.port -> listenPort (integer)\n',
      ].join(''),
    );
  });

  it('counts only what could hold the value', () => {
    const schema = section({
      number: { type: 'number' },
      text: { type: 'string' },
      flag: { type: 'boolean' },
      list: { type: 'array' },
      part: { type: 'object', properties: { x: {} } },
      any: {},
    });
    expect(lines({ old: 'x' }, schema)).toBe('- old -> any (any), part (object), text (string)\n');
    expect(lines({ old: 1.5 }, schema)).toBe('- old -> any (any), number (number), part (object)\n');
    expect(lines({ old: [1] }, schema)).toBe('- old -> any (any), list (array), part (object)\n');
  });

  it('counts a section in which nothing is set as free, and one that is used as taken', () => {
    const schema = section({ used: { type: 'object' }, empty: { type: 'object' } });
    expect(lines({ used: { a: 1 }, empty: { b: {} }, old: 1 }, schema)).toBe('- old -> empty (object)\n');
  });

  it('offers nobody the values that helm shares among charts', () => {
    expect(lines({ old: 'x' }, section({ global: {} }))).toBe('- old -> nothing free beside it\n');
  });

  it('shows eight and counts the rest', () => {
    const many = Object.fromEntries(
      Array.from({ length: 11 }, (_, at) => [`k${at + 10}`, { type: 'string' }]),
    );
    expect(lines({ old: 'x' }, section(many))).toMatch(/k17 \(string\), and 3 more\n$/);
  });

  it('computes nothing through lists, and says so', () => {
    const schema = section({ a: { type: 'array', items: section({ b: { type: 'string' } }) } });
    expect(lines({ a: [{ old: 'x' }] }, schema)).toBe('- a.0.old -> beside it: not computed\n');
  });
});
