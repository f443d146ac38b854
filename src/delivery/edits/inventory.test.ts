import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import { without } from '../levers.ts';
import { applyEdits } from './apply.ts';
import { inventory, inventoryOf } from './inventory.ts';
import { describeFiles, inventoryText } from './inventory-text.ts';

const PATH = 'addons/production/addons.yaml';
const TEXT = `# what runs
metallb:
  defaultVersion: 0.16.0
  valuesObject:
    speaker: {frr: {enabled: true}}
    frrk8s:
      enabled: true
`;
const tree = aTree({ [PATH]: TEXT, 'broken.yaml': 'a: [', 'link.yaml': { kind: 'Symlink', target: 'x' } });

describe('lever 1: the inventory', () => {
  it('lever 1: shows each scalar in the words of an edit', () =>
    expect(
      describeFiles(tree, [PATH]),
    ).toBe(`FILE addons/production/addons.yaml -- editable scalars (key = value):
  metallb.defaultVersion = 0.16.0
  metallb.valuesObject.speaker.frr.enabled = true
  metallb.valuesObject.frrk8s.enabled = true`));

  it('lever 1: without it the text is shown, in which no key stands as an edit names it', () => {
    const shown = describeFiles(tree, [PATH], without('inventory'));
    expect(shown).toContain('defaultVersion: 0.16.0');
    expect(shown).not.toContain('metallb.defaultVersion');
  });

  it('has a form with the path on each line', () =>
    expect(describeFiles(tree, [PATH], undefined, { form: 'PerLine' })).toContain(
      '  path: addons/production/addons.yaml  key: metallb.defaultVersion  from: 0.16.0',
    ));

  it('names what cannot be read, and never drops it', () =>
    expect(describeFiles(tree, ['gone.yaml', 'broken.yaml', 'link.yaml']).split('\n\n')).toEqual([
      expect.stringMatching(/^FILE broken\.yaml -- not described: is not YAML: line 1: /),
      'FILE gone.yaml -- not described: is not in the repository',
      'FILE link.yaml -- not described: is a symbolic link',
    ]));

  it('counts what does not fit', () => {
    const text = Array.from({ length: 1000 }, (_, index) => `key${index}: value`).join('\n');
    const files = [inventory('a.yaml', text), inventory('b.yaml', 'x: y\n')];
    const shown = inventoryText(files, { maxCharacters: 2000 });
    expect(shown.length).toBeLessThan(2300);
    expect(shown).toMatch(/\((\d+) more are not shown, and cannot be edited\)/);
    expect(shown).toContain('FILE b.yaml');
  });

  it('has no value that could look like another file', () => {
    const hostile = aTree({
      [PATH]: 'a: "x\\nFILE b.yaml -- editable scalars"\nb: "x\\u2028FILE"\n"c\\nFILE": x\n"d = e": x\n',
      'a\nFILE b.yaml': 'a: 1\n',
    });
    expect(
      describeFiles(hostile, hostile.paths)
        .split('\n')
        .filter((line) => line.startsWith('FILE')),
    ).toEqual([
      'FILE "a\\nFILE b.yaml" -- not described: has a character that is not seen',
      `FILE ${PATH} -- editable scalars (key = value):`,
    ]);
  });

  it('lists nothing that an edit could not name', () => {
    const listed = inventory(
      PATH,
      `a.b: dotted
"": nameless
c: &c {d: shared}
e: *c
f: |
  block
g: [one, {h: two}]
i: |-
"quoted key": 'x'
8080: http
<<: *c
`,
    );
    expect(listed).toEqual({
      kind: 'Inventory',
      path: PATH,
      scalars: [],
      others: expect.any(Number),
      duplicates: [],
    });
    expect(inventory(PATH, "g: [one, {h: two}]\n'quoted key': 'x'\n8080: http\nnone:\n")).toMatchObject({
      scalars: [
        { key: 'g.0', value: 'one', line: 1 },
        { key: 'g.1.h', value: 'two', line: 1 },
        { key: 'quoted key', value: 'x', line: 2 },
        { key: '8080', value: 'http', line: 3 },
        { key: 'none', value: '', line: 4 },
      ],
      others: 0,
    });
  });

  it('says which keys stand twice', () =>
    expect(inventoryText([inventory(PATH, 'a: 1\nb: {c: 2}\na: 3\n')])).toContain(
      '(a stands on lines 1 and 3: ambiguous, cannot be edited)',
    ));

  it('gives what an edit needs: each line of it is accepted as it is copied', () => {
    const text = `a: x
b: "1.10"
c: 1.10
d: 'it''s'
e: true
f: [1, two, "three"]
g: {h: -1}
empty: ""
null: null
`;
    const one = aTree({ [PATH]: text });
    const policy = { allow: ['**'], deny: [], scope: [PATH], evidence: '' };
    const found = inventoryOf(one, PATH);
    if (found.kind !== 'Inventory') throw new Error(found.reason);
    expect(found.scalars).toHaveLength(11);
    for (const { key, value } of found.scalars) {
      const to = value === 'true' ? 'false' : /^-?[\d.]+$/.test(value) ? '77' : 'changed';
      const result = applyEdits(one, policy, [{ path: PATH, key, from: value, to, rationale: '' }]);
      expect([key, result.rejected]).toEqual([key, []]);
    }
  });
});

describe('large and hostile files', () => {
  it.each([
    ['a mapping of 50,000 keys', Array.from({ length: 50_000 }, (_, index) => `k${index}: v`).join('\n')],
    ['the same in flow', `{${Array.from({ length: 20_000 }, (_, index) => `k${index}: v`).join(', ')}}`],
    ['one key 20,000 times', 'k: v\n'.repeat(20_000)],
    ['20,000 documents', 'k: v\n---\n'.repeat(20_000)],
    [
      'aliases of aliases',
      `a: &a [x]\n${Array.from({ length: 5000 }, (_, index) => `k${index}: [*a, *a]`).join('\n')}`,
    ],
    ['a comment of 1 MB', `# ${'x'.repeat(1_000_000)}\nk: v\n`],
    ['a text of 1 MB', `k: "${'x'.repeat(1_000_000)}"\n`],
    ['a key of 1 MB', `${'x'.repeat(1_000_000)}: v\n`],
    ['1,000 values below a key of 1 MB', `${'x'.repeat(1_000_000)}:\n${'  - v\n'.repeat(1000)}`],
    ['100,000 brackets', '['.repeat(100_000)],
    ['100,000 dashes', '- '.repeat(100_000)],
    ['100,000 question marks', '? '.repeat(100_000)],
  ])('%s are read, or refused, and do not stall', (_, text) => {
    expect(['Inventory', 'Unreadable']).toContain(inventory('a.yaml', text).kind);
  });
});
