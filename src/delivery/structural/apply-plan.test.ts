import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyPlan } from './apply-plan.ts';
import { readDocument, writeDocument } from './document.ts';
import { planOf, withoutEmptied } from './plan.ts';
import { equals, isMapping, leavesOf, type Mapping, type Path, type Value, valueAt } from './value.ts';

function read(text: string): Mapping {
  const reading = readDocument(text);
  if (reading.kind === 'Unreadable' || !isMapping(reading.value)) throw new Error(`unreadable: ${text}`);
  return reading.value;
}

const migrated = (text: string, proposed: string, prefix: Path = []) => {
  const at = valueAt(read(text), prefix);
  if (!isMapping(at)) throw new Error('no mapping');
  return applyPlan(text, { document: 0, prefix }, planOf(at, read(proposed)));
};

const FILE = [
  '# settings of ours',
  'oldName: mine # keep this remark',
  'livenessProbe:',
  '  tcpSocket: null',
  '  httpGet:',
  '    path: /x',
  '',
  '# what follows goes',
  'gate:',
  '  mode: strict',
  'script: |',
  '  echo hello',
  'last: 1',
  '',
].join('\n');

describe('applyPlan', () => {
  it('renames, sets and removes by whole lines and leaves all else as it was', () => {
    const proposed = [
      'newName: mine',
      'livenessProbe: {tcpSocket: null, httpGet: {path: /x}}',
      'script: |',
      '  echo hello',
      'last: 2',
      'level: 3',
      '',
    ].join('\n');
    expect(migrated(FILE, proposed)).toEqual({
      kind: 'Applied',
      text: [
        '# settings of ours',
        'newName: mine # keep this remark',
        'livenessProbe:',
        '  tcpSocket: null',
        '  httpGet:',
        '    path: /x',
        '',
        '# what follows goes',
        'script: |',
        '  echo hello',
        'last: 2',
        'level: 3',
        '',
      ].join('\n'),
    });
  });

  it('BR-56: the last key of a section takes the section with it, up to where something is left', () => {
    const text = 'a:\n  b:\n    c: 1\n  d: 2\nz: 1\n';
    expect(migrated(text, 'a: {d: 2}\nz: 1\n')).toEqual({ kind: 'Applied', text: 'a:\n  d: 2\nz: 1\n' });
    expect(migrated('a:\n  b:\n    c: 1\nz: 1\n', 'a: {b: {}}\nz: 1\n')).toEqual({
      kind: 'Applied',
      text: 'z: 1\n',
    });
  });

  it('works below a prefix, at its indentation', () => {
    const text = 'spec:\n  values:\n    old: 1\n    other: x\n  more: t\n';
    expect(migrated(text, 'fresh: 1\nother: x\nlist: [a, {b: c}]\n', ['spec', 'values'])).toEqual({
      kind: 'Applied',
      text: 'spec:\n  values:\n    fresh: 1\n    other: x\n    list:\n      - a\n      - b: c\n  more: t\n',
    });
  });

  it.each([
    ['CRLF', 'a: 1\r\nb: 2\r\nc: 3\r\n', 'a: 1\nx: 2\nd: 4\n', 'a: 1\r\nx: 2\r\nd: 4\r\n'],
    ['a byte order mark', '\uFEFFa: 1\nb: 2\n', 'b: 2\nc: 3\n', '\uFEFFb: 2\nc: 3\n'],
    ['no newline at the end', 'a: 1\nb: 2', 'a: 1\nb: 2\nc: 3\n', 'a: 1\nb: 2\nc: 3'],
    ['a block of text at the end', 'a: |\n  x\n  y\n', 'a: "x\\ny\\n"\nb: 2\n', 'a: |\n  x\n  y\nb: 2\n'],
    ['a list at the end', 'a:\n- x\n- t: 1\n', 'a: [x, {t: 1}]\nb: 2\n', 'a:\n- x\n- t: 1\nb: 2\n'],
    ['words that YAML 1.1 takes for others', 'a: 1\n', 'a: "yes"\n', 'a: "yes"\n'],
  ])('keeps %s', (_, text, proposed, wanted) => {
    expect(migrated(text, proposed)).toEqual({ kind: 'Applied', text: wanted });
  });

  it.each([
    ['a mapping in braces', 'a: {b: 1, c: 2}\n', 'a: {c: 2}\n', /a.b stands in a mapping in braces/],
    ['nothing to stand beside', 'a: {}\n', 'a: {b: 1}\n', /braces|nothing in it/],
  ])('refuses %s', (_, text, proposed, reason) => {
    expect(migrated(text, proposed)).toEqual({ kind: 'Refused', reason: expect.stringMatching(reason) });
  });

  it('refuses a rename onto a key that is there', () => {
    const plan = [{ kind: 'Rename', path: ['a'], to: 'b', value: 1 }] as const;
    expect(applyPlan('a: 1\nb: 2\n', { document: 0, prefix: [] }, plan)).toEqual({
      kind: 'Refused',
      reason: 'a cannot be renamed: b is there already',
    });
  });

  const scalar = fc.oneof(
    fc.string({ maxLength: 12 }).filter((text) => !/[\p{Cc}\p{Cs}\u0085\u2028\u2029\ufeff]/u.test(text)),
    fc.integer({ min: -1000, max: 1000 }),
    fc.boolean(),
    fc.constant(null),
    fc.constantFrom('yes', 'on', '012', '1.10', '0e1', '12:30', '~', '', 'a: b', '- x', '#', "'", '"'),
  );
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'port', 'on', 'x-y', '1', 'with space', 'é');
  const { tree } = fc.letrec<{ tree: Mapping; node: Value }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      scalar,
      tie('tree'),
      fc.array(scalar, { minLength: 1, maxLength: 3 }),
      fc.array(tie('tree'), { minLength: 1, maxLength: 2 }),
    ),
    tree: fc.dictionary(key, tie('node'), { minKeys: 1, maxKeys: 5, noNullPrototype: true }),
  }));

  it('gets from any values to any others, or refuses; what both have keeps its bytes', () => {
    let applied = 0;
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        const text = writeDocument(before);
        expect(equals(read(text), before)).toBe(true);
        const target = withoutEmptied(before, after);
        const plan = planOf(before, after);
        const outcome = applyPlan(text, { document: 0, prefix: [] }, plan);
        if (outcome.kind === 'Refused') return;
        applied += 1;
        if (Object.keys(target).length > 0) expect(equals(read(outcome.text), target)).toBe(true);
        const kept = new Set(text.split('\n'));
        const touched = leavesOf(target).filter(({ path, value }) => !equals(valueAt(before, path), value));
        if (touched.length === 0 && plan.every(({ kind }) => kind === 'Remove'))
          expect(outcome.text.split('\n').every((line) => kept.has(line))).toBe(true);
      }),
      { numRuns: 600, seed: 7 },
    );
    expect(applied).toBeGreaterThan(300);
  });
});

describe('planOf', () => {
  const kinds = (before: Mapping, after: Mapping) =>
    planOf(before, after).map(({ kind, path }) => `${kind} ${path.join('.')}`);

  it('sees a rename only where nothing else could be meant', () => {
    expect(kinds({ a: 1 }, { b: 1 })).toEqual(['Rename a']);
    expect(kinds({ a: 1 }, { b: 1, c: 1 })).toEqual(['Set b', 'Set c', 'Remove a']);
    expect(kinds({ a: 1, b: 1 }, { c: 1 })).toEqual(['Set c', 'Remove a', 'Remove b']);
    expect(kinds({ a: 1 }, { b: 2 })).toEqual(['Set b', 'Remove a']);
    expect(kinds({ s: { a: 1 } }, { t: { a: 1 } })).toEqual(['Rename s']);
  });

  it('G13: is a function of two documents: nothing of it is named by anybody', () => {
    expect(kinds({ a: 1, s: { x: 1, y: 2 } }, { s: { x: 1, z: 2 }, a: 1 })).toEqual(['Rename s.y']);
    expect(kinds({ a: 1 }, { a: 1 })).toEqual([]);
  });
});
