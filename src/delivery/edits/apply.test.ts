import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { aTree } from '../../../test/builders/tree.ts';
import { without } from '../levers.ts';
import type { RepositoryTree } from '../port.ts';
import type { Edit } from '../verdict.ts';
import { type ApplyOptions, type ApplyResult, applyEdits } from './apply.ts';
import { inventoryOf } from './inventory.ts';
import { outcomeOf } from './outcome.ts';
import type { EditPolicy } from './policy.ts';
import { readBackFault } from './read-back.ts';
import { readLeaves } from './yaml/leaves.ts';

const PATH = 'apps/values.yaml';
const EVIDENCE = '0.159.0 1.1.1 1.10 1.11 1.2.0 2.0 1.3.0';

const edit = (key: string, from: string, to: string, path = PATH): Edit => ({
  path,
  key,
  from,
  to,
  rationale: 'the bump needs it',
});
const policyFor = (tree: RepositoryTree, over: Partial<EditPolicy> = {}): EditPolicy => ({
  allow: ['apps/**'],
  deny: [],
  scope: tree.paths,
  evidence: EVIDENCE,
  ...over,
});

/** Edits of one file; its text afterwards, or undefined when it was left alone. */
function apply(
  text: string,
  edits: readonly Edit[],
  options: ApplyOptions = {},
  over: Partial<EditPolicy> = {},
) {
  const tree = aTree({ [PATH]: text });
  const result = applyEdits(tree, policyFor(tree, over), edits, options);
  const [file] = result.files;
  return { ...result, text: file && new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes) };
}
const applied = (text: string, key: string, from: string, to: string): string | undefined =>
  apply(text, [edit(key, from, to)]).text;
const reasonOf = (result: ApplyResult): string | undefined => result.rejected[0]?.reason;
const refusal = (text: string, key: string, from: string, to: string) =>
  apply(text, [edit(key, from, to)]).rejected[0];

/** Numbers of lines that differ. */
function changedLines(before: string, after: string | undefined): readonly number[] {
  const [one, other] = [before.split('\n'), (after ?? '').split('\n')];
  expect(other).toHaveLength(one.length);
  return one.flatMap((line, index) => (line === other[index] ? [] : [index + 1]));
}

describe('an edit changes the bytes of its scalar and no other', () => {
  it('BR-46 one line, and the final newline stays', () => {
    const text = 'collector:\n  image: otel/collector-contrib:0.139.0\n';
    const result = apply(text, [
      edit('collector.image', 'otel/collector-contrib:0.139.0', 'otel/collector-contrib:0.159.0'),
    ]);
    expect(result.text).toBe('collector:\n  image: otel/collector-contrib:0.159.0\n');
    expect(result.applied).toMatchObject([{ line: 2, after: 'otel/collector-contrib:0.159.0' }]);
  });

  it('BR-46 a stale edit changes nothing, and the verdict becomes an escalation', () => {
    const text = 'collector:\n  image: otel/collector-contrib:0.140.0\n';
    const result = apply(text, [
      edit('collector.image', 'otel/collector-contrib:0.139.0', 'otel/collector-contrib:0.159.0'),
    ]);
    expect(result).toMatchObject({ files: [], applied: [], rejected: [{ reason: 'Stale' }] });
    expect(outcomeOf(result)).toMatchObject({ kind: 'Escalate', rejected: [{ key: 'collector.image' }] });
  });

  it('an edit that changes nothing is refused', () =>
    expect(refusal('a: 1.10\n', 'a', '1.10', '1.10')).toMatchObject({ message: 'changes nothing' }));

  it('BR-47 comments, blocks, list indentation and the leading --- stay', () => {
    const text = `---
# section:
#   off: true
config: |
    receivers:
      otlp:   {}

    # not a comment
list:
    - name: a
      tag: 1.1.0   # keep: this
    -   name: b
        tag:   "1.1.0"
`;
    const after = applied(text, 'list.0.tag', '1.1.0', '1.1.1');
    expect(changedLines(text, after)).toEqual([11]);
    expect(after?.split('\n')[10]).toBe('      tag: 1.1.1   # keep: this');
  });

  it('BR-49 long lines stay in one piece', () => {
    const url = `https://example.org/${'x'.repeat(110)}`;
    const text = `url: "${url}"\n\n\ntag: v1\nfolded: >-\n  ${'word '.repeat(40)}\n\n# the end\n`;
    const after = applied(text, 'tag', 'v1', 'v2');
    expect(changedLines(text, after)).toEqual([4]);
    const moved = applied(text, 'url', url, `${url}/y`);
    expect(changedLines(text, moved)).toEqual([1]);
  });

  it('BR-50 1.10 stays a text, quoted where it was not', () => {
    expect(applied('tag: "1.9"\n', 'tag', '1.9', '1.10')).toBe('tag: "1.10"\n');
    expect(applied('tag: 1.9\n', 'tag', '1.9', '1.10')).toBe('tag: "1.10"\n');
    expect(applied("tag: '1.9'\n", 'tag', '1.9', '1.10')).toBe("tag: '1.10'\n");
  });

  it('BR-50 from is what is written, not the number that it means', () => {
    expect(applied('tag: 1.10\n', 'tag', '1.10', '1.11')).toBe('tag: 1.11\n');
    expect(refusal('tag: 1.10\n', 'tag', '1.1', '1.11')).toMatchObject({
      reason: 'Stale',
      message: 'is "1.10" now, not "1.1"',
    });
  });

  it.each([
    '0e1234',
    '29111998',
    '0123456',
    'yes',
    'no',
    'on',
    '12:30',
    '1_000',
    '0o17',
    '2024-01-02',
    'null',
    '~',
    'true',
    '0x1F',
    '.5',
    '1e3',
    '',
  ])('BR-51 the text %j is written quoted', (to) => {
    const after = applied('tag: abc123f # built\n', 'tag', 'abc123f', to);
    expect(after).toBe(`tag: "${to}" # built\n`);
    for (const version of ['1.1', '1.2'] as const)
      expect(parse(after ?? '', { version })).toEqual({ tag: to });
  });

  it('BR-52 a key that stands twice is refused and named, whichever one was meant', () => {
    const text = 'image: {repository: a, tag: 1.0.0}\nname: x\nimage: {tag: 1.1.0}\n';
    for (const from of ['1.1.0', '1.0.0'])
      expect(refusal(text, 'image.tag', from, '1.2.0')).toMatchObject({
        reason: 'NotEditable',
        message: expect.stringContaining('image stands more than once'),
      });
    expect(inventoryOf(aTree({ [PATH]: text }), PATH)).toMatchObject({
      scalars: [{ key: 'name', value: 'x', line: 2 }],
      duplicates: [{ key: 'image', lines: [1, 3] }],
    });
  });

  it('BR-52 so is one that is only written twice', () => {
    expect(refusal('a:\n  tag: v1\n  "tag": v2\n', 'a.tag', 'v2', 'v3')).toMatchObject({
      reason: 'NotEditable',
    });
    expect(refusal('16: a\n0x10: b\n', '16', 'a', 'c')).toMatchObject({ reason: 'NotEditable' });
    expect(refusal('16: a\n0x10: b\n', '0x10', 'b', 'c')).toMatchObject({ reason: 'NotEditable' });
  });

  const merged = 'base: &b {replicas: 2}\napi: {<<: *b}\nweb: {<<: *b, replicas: 3}\n';

  it('BR-53 what is inherited is no scalar of its own', () =>
    expect(refusal(merged, 'api.replicas', '2', '4')).toEqual({
      path: PATH,
      key: 'api.replicas',
      reason: 'NotEditable',
      message: 'is no scalar of its own: api takes values through a merge key',
      edit: expect.anything(),
    }));

  it('BR-53 what overrides it is edited on its line', () =>
    expect(applied(merged, 'web.replicas', '3', '4')).toBe(
      'base: &b {replicas: 2}\napi: {<<: *b}\nweb: {<<: *b, replicas: 4}\n',
    ));

  it('BR-53 what others inherit is refused, since they would change with it', () =>
    expect(refusal(merged, 'base.replicas', '2', '4')).toMatchObject({
      reason: 'NotEditable',
      message: 'would change with it what *b stands for elsewhere',
    }));

  it('an anchor that nothing follows stays where it is', () =>
    expect(applied('tag: &t v1\nother: v1\n', 'tag', 'v1', 'v2')).toBe('tag: &t v2\nother: v1\n'));

  it('what stands before a merge key is refused', () =>
    expect(refusal('b: &b {n: 1}\na:\n  n: 2\n  <<: *b\n', 'a.n', '2', '3')).toMatchObject({
      message: expect.stringContaining('before a merge key'),
    }));

  it('BR-54 a dotted key is a path, and no new key appears', () => {
    const text = 'image:\n  repository: app\n  tag: v1\n';
    expect(applied(text, 'image.tag', 'v1', 'v2')).toBe('image:\n  repository: app\n  tag: v2\n');
    expect(refusal(text, 'image.tagg', 'v1', 'v2')).toMatchObject({ reason: 'UnknownKey' });
    expect(refusal('image.tag: v1\n', 'image.tag', 'v1', 'v2')).toMatchObject({ reason: 'UnknownKey' });
  });

  it.each(['', '\ufeff'])('BR-55 CRLF stays, after %j', (mark) => {
    const lines = Array.from({ length: 20 }, (_, index) => `key${index + 1}: value${index + 1}`);
    const text = `${mark}${lines.join('\r\n')}\r\n`;
    const after = applied(text, 'key7', 'value7', 'seven') ?? '';
    expect(after.match(/\r\n/g)).toHaveLength(20);
    expect(after.match(/(?<!\r)\n/g)).toBeNull();
    expect(after.startsWith(mark)).toBe(true);
    expect(changedLines(text, after)).toEqual([7]);
    expect(refusal(text, 'key7', 'value7\r', 'seven')).toMatchObject({ reason: 'Malformed' });
  });

  const bytes: readonly (readonly [
    what: string,
    before: string,
    key: string,
    from: string,
    to: string,
    after: string,
  ])[] = [
    ['no newline at the end', 'a: v1', 'a', 'v1', 'v2', 'a: v2'],
    ['a tab before a comment', 'a: v1\t# c\n', 'a', 'v1', 'v2', 'a: v2\t# c\n'],
    ['blanks at the end', 'a: v1   \nb: 1\n', 'a', 'v1', 'v2', 'a: v2   \nb: 1\n'],
    ['a flow mapping', 'a: { b: v1 , c: [p,  q] }\n', 'a.c.1', 'q', 'z', 'a: { b: v1 , c: [p,  z] }\n'],
    ['a text that flow would end', 'a: {b: v1}\n', 'a.b', 'v1', 'v1, c', 'a: {b: "v1, c"}\n'],
    ['JSON', '{\n\t"a": {"b": "v1"}\n}\n', 'a.b', 'v1', 'v2', '{\n\t"a": {"b": "v2"}\n}\n'],
    ['a quote in single quotes', "a: 'v1'\n", 'a', 'v1', "it's", "a: 'it''s'\n"],
    ['a quote in double quotes', 'a: "v1"\n', 'a', 'v1', 'say "x\\y"', 'a: "say \\"x\\\\y\\""\n'],
    ['an empty text', 'a: ""\n', 'a', '', 'x', 'a: "x"\n'],
    ['a value that is not there', 'a:\nb: 1\n', 'a', '', 'x', 'a: x\nb: 1\n'],
    ['the same before a comment', 'a: # none\nb: 1\n', 'a', '', 'x', 'a: x # none\nb: 1\n'],
    ['null', 'a: null\n', 'a', 'null', '8080', 'a: 8080\n'],
    ['a boolean', 'a: true\n', 'a', 'true', 'false', 'a: false\n'],
    ['a quoted boolean', 'a: "true"\n', 'a', 'true', 'false', 'a: "false"\n'],
    ['an old boolean', 'a: yes\n', 'a', 'yes', 'false', 'a: false\n'],
    ['a number', 'a: 8080\n', 'a', '8080', '9090', 'a: 9090\n'],
    ['a quoted number', 'a: "8080"\n', 'a', '8080', '9090', 'a: "9090"\n'],
    ['a version where a number was', 'a: 1.9\n', 'a', '1.9', '1.1.1', 'a: 1.1.1\n'],
    ['a date', 'a: 2024-01-02\n', 'a', '2024-01-02', '2024-02-03', 'a: "2024-02-03"\n'],
    ['a text with a colon', 'a: x\n', 'a', 'x', 'y: z', 'a: "y: z"\n'],
    ['a text with a sign in front', 'a: x\n', 'a', 'x', '*y', 'a: "*y"\n'],
    ['a text that would be a comment', 'a: x\n', 'a', 'x', 'y #z', 'a: "y #z"\n'],
    ['options of a program', 'a: -Xmx1g\n', 'a', '-Xmx1g', '--max 2', 'a: --max 2\n'],
    [
      'characters outside of the plane',
      'a: "\u{1f426}" # \u{1f426}\nb: v1\n',
      'b',
      'v1',
      '\u{1f426}',
      'a: "\u{1f426}" # \u{1f426}\nb: \u{1f426}\n',
    ],
    ['an item of a list', '- v1\n- v2\n', '1', 'v2', 'v3', '- v1\n- v3\n'],
    ['quotes as part of from and to', 'a: "1.9"\n', 'a', '"1.9"', '"1.10"', 'a: "1.10"\n'],
    ['a comment that looks like the value', 'a: v1 # v1\nv1: v1\n', 'v1', 'v1', 'v2', 'a: v1 # v1\nv1: v2\n'],
  ];
  it.each(bytes)('%s', (_, before, key, from, to, after) =>
    expect(applied(before, key, from, to)).toBe(after),
  );

  it('several edits of a file are made on what it is now', () => {
    const text = 'a: v1\nb: [x, "y"]\nc: 1\n';
    const result = apply(text, [edit('c', '1', '22'), edit('a', 'v1', 'version-two'), edit('b.1', 'y', '')]);
    expect(result.text).toBe('a: version-two\nb: [x, ""]\nc: 22\n');
    expect(result.applied.map(({ key }) => key)).toEqual(['c', 'a', 'b.1']);
  });

  it('two edits of one scalar are one too many', () => {
    const result = apply('a: v1\n', [edit('a', 'v1', 'v2'), edit('a', 'v1', 'v3')], { allOrNothing: false });
    expect(result.text).toBe('a: v2\n');
    expect(result.rejected).toMatchObject([{ message: 'is edited twice' }]);
  });

  describe('files of several documents', () => {
    const text = 'kind: A\nspec: {v: v1}\n---\nkind: B\nspec: {v: v1}\n...\n---\n# three\nkind: C\n';

    it('name the second and later ones by their number', () => {
      expect(inventoryOf(aTree({ [PATH]: text }), PATH)).toMatchObject({
        scalars: [
          { key: 'kind', value: 'A', line: 1 },
          { key: 'spec.v', value: 'v1', line: 2 },
          { key: '#2.kind', value: 'B', line: 4 },
          { key: '#2.spec.v', value: 'v1', line: 5 },
          { key: '#3.kind', value: 'C', line: 9 },
        ],
      });
    });

    it('are edited in one document only', () => {
      const after = applied(text, '#2.spec.v', 'v1', 'v2') ?? '';
      expect(changedLines(text, after)).toEqual([5]);
      expect(parseAllDocuments(after).map((document) => document.toJS())).toEqual([
        { kind: 'A', spec: { v: 'v1' } },
        { kind: 'B', spec: { v: 'v2' } },
        { kind: 'C' },
      ]);
    });

    it('have no key that only looks like a document', () =>
      expect(refusal('"#2":\n  kind: x\n---\nkind: y\n', '#2.kind', 'x', 'z')).toMatchObject({
        reason: 'Stale',
      }));
  });
});

describe('what is refused', () => {
  const rows: readonly (readonly [
    text: string,
    key: string,
    from: string,
    to: string,
    reason: string,
    words: string,
  ])[] = [
    ['a: 1\n', 'a', '1', 'two\nb: 3', 'Malformed', 'one line'],
    ['a: 1\n', 'a', '1', 'x\u2028y', 'Malformed', 'one line'],
    ['a: 1\n', 'a', '1', 'x\0', 'Malformed', 'one line'],
    ['a: x\n', 'a', 'x', '\ud800', 'Malformed', 'one line'],
    ['a: x\n', 'a', 'x', 'y'.repeat(5000), 'Malformed', '4096'],
    ['a: x\n', 'a', 'x', '"y"', 'Malformed', 'the same quotes'],
    ['a: "x"\n', 'a', '"x"', 'y', 'Malformed', 'the same quotes'],
    ['a: "x"\n', 'a', '"x"', "'y'", 'Malformed', 'quotes within quotes'],
    ['a: |\n  x\n', 'a', 'x', 'y', 'NotEditable', 'block of text'],
    ['a: x\n  y\n', 'a', 'x y', 'z', 'NotEditable', 'several lines'],
    ['a: "x\\ny"\n', 'a', 'x', 'z', 'NotEditable', 'not one line'],
    ['a: !!str 1\n', 'a', '1', '2', 'NotEditable', 'has the tag'],
    ['a: !vault x\n', 'a', 'x', 'y', 'NotEditable', 'has the tag !vault'],
    ['a: !mine\n  b: x\n', 'a.b', 'x', 'y', 'NotEditable', 'below the tag'],
    ['a: !!omap\n  - b: x\n', 'a.0.b', 'x', 'y', 'UnknownKey', 'not in the file'],
    ['a: &v x\nb: *v\n', 'a', 'x', 'y', 'NotEditable', '*v'],
    ['a: &v x\nb: *v\n', 'b', 'x', 'y', 'NotEditable', 'is the alias *v'],
    ['a: {b: x}\n', 'a', 'x', 'y', 'NotEditable', 'keys below it'],
    ['a: {}\n', 'a', '', 'y', 'NotEditable', 'no scalar'],
    ['a: {b}\n', 'a.b', '', 'y', 'NotEditable', 'no scalar'],
    ['- \n- x\n', '0', '', 'y', 'NotEditable', 'without a place'],
    ['a: {b: , c: 1}\n', 'a.b', '', 'y', 'NotEditable', 'without a place'],
    ['? {x: 1}\n: y\na: x\n', 'a', 'x', 'y', 'NotEditable', 'beside a key that is no name'],
    ['a: true\n', 'a', 'true', 'yes', 'TypeChange', 'boolean'],
    ['a: yes\n', 'a', 'yes', 'no', 'TypeChange', 'write true or false'],
    ['a: true\n', 'a', 'true', '1', 'TypeChange', 'boolean'],
    ['a: 2\n', 'a', '2', 'two', 'TypeChange', 'number'],
    ['a: 2\n', 'a', '2', '007', 'TypeChange', 'number'],
    ['a: 0644\n', 'a', '0644', '0600', 'TypeChange', 'differently'],
    ['a: 1_000\n', 'a', '1_000', '2000', 'TypeChange', 'differently'],
    ['a: 1\n', 'a', '2', '3', 'Stale', 'is "1" now'],
    ['a: "x"\n', 'a', "'x'", "'y'", 'Stale', 'now'],
    ['a: 1\n', 'b', '1', '3', 'UnknownKey', 'not in the file'],
    ['a: 1\n', '', '1', '3', 'UnknownKey', 'not in the file'],
    ['a: [\n', 'a', '1', '3', 'Unreadable', 'is not YAML: line'],
    ['a: 1\n', 'apps/values.yaml', '1', '2', 'UnknownKey', 'not in the file'],
    ['just text\n', '', 'just text', 'x', 'UnknownKey', 'not in the file'],
    ['', 'a', '', 'x', 'UnknownKey', 'not in the file'],
  ];
  it.each(rows)('%j: %s from %j to %j', (text, key, from, to, reason, words) => {
    const result = apply(text, [edit(key, from, to)]);
    expect(result.rejected).toMatchObject([{ reason, message: expect.stringContaining(words) }]);
    expect(result.files).toEqual([]);
  });

  it('what is nested too deeply', () => {
    for (const text of ['['.repeat(200_000), `b: 1\na: ${'['.repeat(150)}x${']'.repeat(150)}\n`])
      expect(refusal(text, 'b', '1', '2')).toMatchObject({
        reason: 'Unreadable',
        message: 'is nested too deeply',
      });
  });

  it('a file whose new text does not read as it should is left alone: nothing is that sure', () => {
    const before = readLeaves('a: 1\nb: 2\n');
    if (before.kind === 'Unreadable') throw new Error(before.reason);
    const [leaf] = before.leaves;
    const target = { leaf: leaf!, token: '3', value: 3 };
    expect(readBackFault(before, 'a: 3\nb: 2\n', [target])).toBeUndefined();
    expect(readBackFault(before, 'a: 3\nb: 4\n', [target])).toBe('would change b on line 2 as well');
    expect(readBackFault(before, 'a: 3\nb: "2"\n', [target])).toBe('would change b on line 2 as well');
    expect(readBackFault(before, 'a: 3\nc: 2\n', [target])).toBe('would change b on line 2 as well');
    expect(readBackFault(before, 'a: 3\nb: &x 2\n', [target])).toBe('would change b on line 2 as well');
    expect(readBackFault(before, '{a: 3,\nb: 2}\n', [target])).toContain('structure');
    expect(readBackFault(before, 'a: 3\nb: 2\nc: 4\n', [target])).toContain('structure');
    expect(readBackFault(before, 'a: 3\nb: [\n', [target])).toContain('could not be read afterwards');
    expect(readBackFault(before, 'a: 4\nb: 2\n', [target])).toBe('would change a on line 1 as well');
    expect(readBackFault(before, 'a: yes\nb: 2\n', [{ ...target, token: 'yes', value: 'yes' }])).toContain(
      'YAML 1.1',
    );
  });

  it('files of objects that decide what is run, wherever they lie', () => {
    const text =
      'apiVersion: v1\n---\napiVersion: hummingbird.dev/v1alpha1\nkind: AgentWorkflow\nspec: {suspend: true}\n';
    for (const written of [
      text,
      text.replace('apiVersion: hum', '"apiVersion": hum'),
      text.replace(': hum', ': &x hum'),
    ])
      expect(refusal(written, '#2.spec.suspend', 'true', 'false')).toMatchObject({
        reason: 'PathDenied',
        message: expect.stringContaining('hummingbird.dev'),
      });
  });
});

describe('the guarantees', () => {
  const text = 'tag: 1.1.0\nport: 80\n';

  it('G1: a denied path is refused before the file is looked at', () => {
    const tree = aTree({ '.gitlab-ci.yml': text });
    const edits = [edit('tag', '1.1.0', '1.2.0', '.gitlab-ci.yml')];
    expect(applyEdits(tree, policyFor(tree, { allow: ['**'] }), edits)).toMatchObject({
      files: [],
      rejected: [{ reason: 'PathDenied' }],
    });
  });

  it('G2: a path that is not allowed, or not in scope, is refused', () => {
    for (const over of [{ allow: [] }, { allow: ['other/**'] }, { scope: [] }, { scope: ['apps/x.yaml'] }])
      expect(reasonOf(apply(text, [edit('tag', '1.1.0', '1.2.0')], {}, over))).toBe('PathDenied');
  });

  it('G3: a misread value is never overwritten', () =>
    expect(reasonOf(apply(text, [edit('tag', '1.0.9', '1.2.0')]))).toBe('Stale'));

  it('G4: a version that was not shown is never written', () => {
    expect(reasonOf(apply(text, [edit('tag', '1.1.0', '1.2.1')]))).toBe('NotCorroborated');
    expect(apply(text, [edit('tag', '1.1.0', '1.2.0')]).text).toBe('tag: 1.2.0\nport: 80\n');
  });

  it('G5: no key comes into being', () =>
    expect(reasonOf(apply(text, [edit('image.tag', '1.1.0', '1.2.0')]))).toBe('UnknownKey'));

  it('G6: nothing outside of the repository is reached', () => {
    const tree = aTree({ [PATH]: text, link: { kind: 'Symlink', target: 'apps' } });
    for (const path of ['apps/../apps/values.yaml', 'link/values.yaml', '/apps/values.yaml'])
      expect(
        reasonOf(
          applyEdits(tree, policyFor(tree, { allow: ['**'], scope: [path] }), [
            edit('tag', '1.1.0', '1.2.0', path),
          ]),
        ),
      ).toBe('UnsafePath');
  });

  const mixed = [edit('port', '80', '81'), edit('tag', '1.0.0', '1.2.0')];

  it('G10: one refusal refuses them all, and tells which ones were sound', () => {
    const result = apply(text, mixed);
    expect(result).toMatchObject({
      files: [],
      applied: [],
      rejected: [{ key: 'tag', reason: 'Stale' }],
      withheld: [{ key: 'port', before: '80', after: '81' }],
    });
    expect(outcomeOf(result)).toMatchObject({ kind: 'Escalate', withheld: [{ key: 'port' }] });
  });

  it('G10: only the configuration lets the sound ones through', () => {
    const result = apply(text, mixed, { allOrNothing: false });
    expect(result.text).toBe('tag: 1.1.0\nport: 81\n');
    expect(outcomeOf(result)).toMatchObject({
      kind: 'Push',
      applied: [{ key: 'port' }],
      rejected: [{ key: 'tag' }],
    });
  });

  it('the tree stays as it was', () => {
    const tree = aTree({ [PATH]: text });
    applyEdits(tree, policyFor(tree), [edit('port', '80', '81')]);
    expect(inventoryOf(tree, PATH)).toMatchObject({
      scalars: [{ key: 'tag' }, { key: 'port', value: '80' }],
    });
  });
});

describe('levers', () => {
  it('lever 3: without corroboration a made-up patch version is written', () => {
    const edits = [edit('tag', '1.1.0', '1.5.0')];
    expect(apply('tag: 1.1.0\n', edits).text).toBeUndefined();
    expect(apply('tag: 1.1.0\n', edits, { levers: without('corroboration') }).text).toBe('tag: 1.5.0\n');
  });

  it('lever 3: booleans and ports need no evidence', () => {
    expect(apply('a: true\nb: 80\n', [edit('a', 'true', 'false'), edit('b', '80', '8443')]).text).toBe(
      'a: false\nb: 8443\n',
    );
  });

  it('lever 4: without it a fix of which nothing was left would be a success', () => {
    const result = apply('tag: 1.1.0\n', [edit('tag', '1.0.0', '1.2.0')]);
    expect(outcomeOf(result).kind).toBe('Escalate');
    expect(outcomeOf(result, without('emptyEscalates'))).toMatchObject({ kind: 'Push', files: [] });
  });
});
