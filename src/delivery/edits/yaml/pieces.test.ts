import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seeded, yamlFile } from '../../../../test/builders/generated-yaml.ts';
import { readLeaves } from './leaves.ts';
import { pieces } from './pieces.ts';

/** As one text, and cut at every key of the outermost mapping. */
const bothWays = (text: string) => [readLeaves(text, Number.POSITIVE_INFINITY), readLeaves(text, 1)] as const;

function expectSame(text: string): void {
  const [whole, cut] = bothWays(text);
  expect(JSON.stringify(cut)).toBe(JSON.stringify(whole));
  if (whole.kind === 'Leaves' && cut.kind === 'Leaves') expect(cut.merging).toEqual(whole.merging);
}

describe('a long text that is read in pieces', () => {
  it('is cut at keys of the outermost mapping only', () => {
    const text = '# head\na: 1\nb:\n  c: 2\n- d\n# e\n"f": 3\n';
    expect(pieces(text, 1)?.map(([start, end]) => text.slice(start, end))).toEqual([
      '# head\n',
      'a: 1\n',
      'b:\n  c: 2\n- d\n# e\n',
      '"f": 3\n',
    ]);
    expect(pieces(text, 1000)).toBeUndefined();
  });

  it.each([
    ['several documents', 'a: 1\n---\nb: 2\n'],
    ['an end of the document', 'a: 1\nb: 2\n...\n'],
    ['a directive', '%YAML 1.1\n---\na: 1\nb: 2\n'],
    ['a mark with something behind it', '--- !!map\na: 1\nb: 2\n'],
  ])('is taken whole with %s', (_, text) => expect(pieces(text, 1)).toBeUndefined());

  it.each([
    '---\na: 1\nb: 2\n',
    '\ufeffa: 1\nb: 2\n',
    '  a: 1\nb: 2\n',
    'a: "x\nb: y"\nc: 1\n',
    "a: 'x\nb: y'\n",
    'a: {\nb: 1\n}\nc: 2\n',
    'a: [\nb\n]\n',
    '{\n"a": 1,\n"b": 2\n}\n',
    'a: &x 1\nb: *x\nc: 2\n',
    'a: &x {d: 1}\nb: {<<: *x}\n',
    'a: 1\nb: 2\na: 3\n',
    'a: 1\n<<: {c: 1}\nb: 2\n',
    'a: |+\n  x\n\n\nb: 1\n',
    'a: >\nb: 1\n',
    '? a\n: b\nc: d\n',
    '? a\nb: c\n',
    'a\nb\nc\n',
    '- a\nb: c\n',
    'a:\n- b\nc: d\n',
    'a: b\nc\n',
    'a:\nb\n',
    '!!map\na: 1\nb: 2\n',
    '&x\na: 1\nb: *x\n',
    'a: 1\n b: 2\nc: 3\n',
    '{a: 1}: 2\nb: 3\n',
    'a: 1\n*x : 2\nb: 3\n',
    '',
    '# nothing\n',
  ])('%j says the same as the whole', expectSame);

  it('says the same as the whole, also where it is broken', () => {
    let read = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (seed) => {
        const random = seeded(seed);
        let text = yamlFile(random);
        for (let times = Math.floor(random() * 3); times > 0; times -= 1) {
          const at = Math.floor(random() * text.length);
          const put = ['"', "'", '\n', '{', ']', ' ', '\n- ', '|', '', '\na: b', ': ', '#'];
          text =
            text.slice(0, at) +
            put[Math.floor(random() * put.length)] +
            text.slice(at + Math.floor(random() * 3));
        }
        if (readLeaves(text).kind === 'Leaves') read += 1;
        expectSame(text);
      }),
      { numRuns: 2000, seed: 20_261_130 },
    );
    expect(read).toBeGreaterThan(800);
    expect(read).toBeLessThan(1950);
  });
});
