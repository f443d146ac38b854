import { describe, expect, it } from 'vitest';
import type { ChartFiles } from '../../chart/files.ts';
import { chartValues, defaultsOf } from './chart-values.ts';
import { valuesNotDeclared } from './declared.ts';
import { hasFlipped, movedDefaults } from './defaults.ts';
import { merged, parsedValues, type Values } from './merge.ts';

const chart = (
  values: string,
  template = '',
  more: Partial<ChartFiles> & { readonly dependencies?: readonly object[] } = {},
): ChartFiles => ({
  chartYaml: {
    name: 'web',
    version: '1.0.0',
    dependencies: (more.dependencies ?? []).map((one) => ({
      name: '',
      version: '1',
      repository: '',
      ...one,
    })),
  },
  values,
  schema: undefined,
  crds: [],
  templates: [{ path: 'templates/a.yaml', text: template }],
  subcharts: new Map(),
  ...more,
});

const undeclared = async (base: ChartFiles, head: ChartFiles, set: Values) =>
  valuesNotDeclared(await chartValues(base), await chartValues(head), set);

const OLD = chart('a: 1\nmap: {x: 1}\nfree: {}\nlist: []\n', '{{ .Values.b }} {{ .Values.c.d }}');

describe('a setting that the new chart does not know', () => {
  it.each([
    ['a: 2', ['a']],
    ['map: {x: 2}', ['map.x']],
    ['b: 2', ['b']],
    ['c: {d: 1}', ['c.d']],
    ['free: {anything: 1}', ['free.anything']],
    ['list: [1]', ['list']],
    ['never: known', []],
    ['global: {x: 1}', []],
    ['map: {never: known}', []],
    ['"a.b": 1', []],
  ])('among %s is %j when it knows nothing any more', async (set, keys) => {
    expect(await undeclared(OLD, chart(''), parsedValues(set) ?? {})).toEqual(keys);
  });

  it.each([
    ['declares it', chart('a: 5\n')],
    ['declares a free mapping in its place', chart('a: {}\n')],
    ['reads it', chart('', '{{ .Values.a | quote }}')],
    ['reads it by index', chart('', '{{ index .Values "a" }}')],
    ['reads something below it', chart('', '{{ .Values.a.b }}')],
    ['hands on all its values', chart('', '{{ include "x" .Values }}')],
    ['has values that are no mapping', chart('- a')],
    ['switches a dependency with it', chart('', '', { dependencies: [{ name: 'x', condition: 'a, b.c' }] })],
    ['hands it to a chart that is not there', chart('', '', { dependencies: [{ name: 'x', alias: 'a' }] })],
  ])('is none when the new chart %s', async (_what, head) => {
    expect(await undeclared(OLD, head, { a: { b: 1 } })).toEqual([]);
  });

  it.each([
    ['names it in a comment only', chart('', '{{/* .Values.a */}}')],
    [
      'names it in its notes only',
      chart('', '', { templates: [{ path: 'templates/NOTES.txt', text: '{{ .Values.a }}' }] }),
    ],
    ['reads another key that begins so', chart('', '{{ .Values.abc }}')],
  ])('is one when the new chart %s', async (_what, head) => {
    expect(await undeclared(OLD, head, { a: 1 })).toEqual(['a']);
  });

  it('is judged by the chart that it is for', async () => {
    const dependencies = [{ name: 'redis', alias: 'cache' }];
    const withRedis = (values: string) =>
      chart('', '', { dependencies, subcharts: new Map([['redis', chart(values)]]) });
    const set = { cache: { port: 1, size: 2 } };
    expect(await undeclared(withRedis('port: 1\nsize: 1\n'), withRedis('port: 1\n'), set)).toEqual([
      'cache.size',
    ]);
    expect(await undeclared(withRedis('port: 1\nsize: 1\n'), chart(''), set)).toEqual([
      'cache.port',
      'cache.size',
    ]);
  });
});

describe('a default that moved', () => {
  const defaults = (text: string) => parsedValues(text) ?? {};

  it.each([
    ['a: true', 'a: false', '', [{ key: 'a', from: 'true', to: 'false' }]],
    ['a: {b: 1, c: 2}', 'a: {b: 1, c: 3}', '', [{ key: 'a.c', from: '2', to: '3' }]],
    [
      'a: 1',
      'b: 1',
      '',
      [
        { key: 'a', from: '1' },
        { key: 'b', to: '1' },
      ],
    ],
    ['a: [1]', 'a: [1, 2]', '', [{ key: 'a', from: '[1]', to: '[1,2]' }]],
    ['a: {b: 1}', 'a: {b: 2}', 'a: {b: 1}', []],
    ['a: {b: 1}', 'a: {b: 2}', 'a: null', []],
    ['a: {b: 1}', 'a: {b: 2}', 'a: {}', [{ key: 'a.b', from: '1', to: '2' }]],
    ['a: {}', 'a: {b: 2}', '', [{ key: 'a.b', to: '2' }]],
    ['a: 1', 'a: 1', '', []],
  ])('from %s to %s with %j of our own', (from, to, set, moved) => {
    expect(movedDefaults(defaults(from), defaults(to), defaults(set))).toEqual(moved);
  });

  it('has flipped when it was switched on or off', () => {
    expect(hasFlipped({ key: 'a', from: 'true', to: 'false' })).toBe(true);
    expect(hasFlipped({ key: 'a', from: 'false', to: 'true' })).toBe(true);
    expect(hasFlipped({ key: 'a', from: '"true"', to: '"false"' })).toBe(false);
    expect(hasFlipped({ key: 'a', from: 'true' })).toBe(false);
  });

  it('counts what a chart says of its subcharts over what they say themselves', async () => {
    const subcharts = new Map([['redis', chart('port: 1\nsize: 1\n')]]);
    const dependencies = [{ name: 'redis', alias: 'cache' }];
    expect(
      defaultsOf(await chartValues(chart('cache: {port: 2}\n', '', { dependencies, subcharts }))),
    ).toEqual({
      cache: { port: 2, size: 1 },
    });
  });
});

it('merging keeps null, which takes a default away, and names that objects of JavaScript have', () => {
  const values = merged({ a: { b: 1 }, c: 1 }, JSON.parse('{"a":null,"__proto__":{"x":1},"toString":2}'));
  expect(JSON.stringify(values)).toBe('{"a":null,"c":1,"__proto__":{"x":1},"toString":2}');
});
