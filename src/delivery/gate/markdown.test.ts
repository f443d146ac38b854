import fc from 'fast-check';
import MarkdownIt from 'markdown-it';
import { describe, expect, it } from 'vitest';
import { anApplicationReport } from '../../../test/builders/gate-report.ts';
import { gateColour, gateCounts } from './counts.ts';
import { code } from './escape.ts';
import { reportMarkdown } from './markdown.ts';
import type { ApplicationReport, GateReport } from './report.ts';
import { parseReport, reportJson } from './report-json.ts';

const EMPTY = anApplicationReport({
  path: 'app.yaml',
  head: { repository: 'https://charts.example.org', chart: 'web', version: '2.0.0', appVersion: '2' },
});

/** Every place of a report that holds text of others. */
function reportOf(text: string): GateReport {
  const ref = { apiVersion: text, kind: text, name: text, namespace: text };
  return {
    version: 1,
    baseSha: 'a'.repeat(40),
    headSha: 'b'.repeat(40),
    changedFiles: [text],
    notCovered: [text],
    applications: [
      {
        name: text,
        path: text,
        base: { repository: text, chart: text, version: text, appVersion: text },
        head: { repository: text, chart: text, version: `${text}2` },
        valueSources: [{ path: text, key: text }],
        targeting: [{ what: 'Namespace', from: text, to: text, object: ref }],
        added: [ref],
        removed: [ref],
        changed: [{ ...ref, fields: [{ path: text, from: text, to: text }], more: 3 }],
        relabelled: 2,
        apiVersionMoves: [{ ...ref, from: text }],
        droppedVersions: [
          {
            crd: text,
            group: text,
            kind: text,
            versions: [text],
            target: text,
            consumers: [{ path: text, line: 3, object: text }],
          },
        ],
        defaults: [{ key: text, from: text, to: text }],
        valuesNotDeclared: [text],
        schemaRefusals: [text],
        unrenderable: { base: text, head: text },
        images: [{ from: text, to: text }],
      },
    ],
  };
}

/** The tags of a page, without what stands in them. */
function structure(markdown: string): string {
  const html = new MarkdownIt({ html: true, linkify: true }).render(markdown);
  return html.replace(/<code>[^<]*<\/code>/g, '<code/>');
}

describe('Markdown of a report', () => {
  const plain = structure(reportMarkdown(reportOf('x')));

  it.each([
    ['a heading', '\n# Gate report\nGreen: nothing in the way.'],
    ['a list', '\n- Removed (0)'],
    ['HTML', '<script>alert(1)</script><!-- -->'],
    ['the end of code', '`` ` ``` `'],
    ['a link', '[x](https://evil.example.org) https://evil.example.org'],
    ['an image', '![x](https://evil.example.org/?q=1)'],
    ['a mention and a command', '@all /merge\n/close'],
    ['other line ends', 'a\u2028# b\u2029# c\u0085# d\r# e\x0b# f'],
    ['nothing', ''],
    ['spaces', '   '],
    ['backslashes', '\\`\\'],
  ])('has the same structure with %s in every text', (_what, text) => {
    expect(structure(reportMarkdown(reportOf(text)))).toBe(plain);
  });

  it('has the same structure whatever the texts are', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom('`', ' ', '\n', '#', '-', '<', '>', '|', 'a') }),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(structure(reportMarkdown(reportOf(text)))).toBe(plain);
      }),
      { seed: 8, numRuns: 500 },
    );
  });

  it('shows no more of a list than people read, and says how many there are', () => {
    const added = Array.from({ length: 100 }, (_one, index) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      name: `p${index}`,
    }));
    const markdown = reportMarkdown({ ...reportOf('x'), applications: [{ ...EMPTY, added }] });
    expect(markdown).toContain('### Added (100)');
    expect(markdown).toContain('- and 40 more');
    expect(markdown).not.toContain('p60');
  });

  it('is cut at a line when it would be too long, and says so', () => {
    const changed = Array.from({ length: 60 }, (_one, index) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', name: `p${index}`, more: 5 },
      fields: Array.from({ length: 40 }, (_field, at) => ({
        path: `f${at}`,
        from: 'x'.repeat(200),
        to: 'y',
      })),
    }));
    const report = { ...reportOf('x'), applications: [{ ...EMPTY, changed }] };
    expect(reportMarkdown(report)).toMatch(/\n\nThe report is cut here: \d+ lines are left out\.\n$/);
    expect(reportMarkdown(report).length).toBeLessThan(100_100);
    expect(reportMarkdown(report, { maxCharacters: 1_000_000 })).toContain('  - and 33 more fields');
  });

  it('reads as one report', () => {
    const report: GateReport = {
      ...reportOf('x'),
      changedFiles: ['app.yaml'],
      notCovered: [],
      applications: [
        { ...EMPTY, removed: [{ apiVersion: 'v1', kind: 'Service', name: 'old', namespace: 'web' }] },
      ],
    };
    expect(reportMarkdown(report)).toBe(`# Gate report

Rendered at \`aaaaaaaaaaaa\` (merge base) and \`bbbbbbbbbbbb\` (head). Red: 1 object that is gone or default that flipped.

### Changed files (1)

- \`app.yaml\`

## \`Application argocd/web\`

Chart \`web\` \`1.0.0\` of \`https://charts.example.org\` -> \`web\` \`2.0.0\` (app \`2\`) of \`https://charts.example.org\`, declared in \`app.yaml\`.

### Removed (1)

- \`Service/old\` in \`web\`
`);
  });
});

it.each([
  ['a', '`a`'],
  ['`', '`` ` ``'],
  ['a``b', '```a``b```'],
  [' a ', '`a`'],
  ['a\n\tb', '`a b`'],
  ['a\u202eb\u200bc', '`a\ufffdb\ufffdc`'],
  ['x'.repeat(400), `\`${'x'.repeat(300)}…\``],
])('code of %j is %j', (text, written) => {
  expect(code(text)).toBe(written);
});

describe('JSON of a report', () => {
  it('is read as it was written, whatever is in it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseReport(reportJson(reportOf(text)))).toEqual(reportOf(text));
      }),
      { seed: 8, numRuns: 200 },
    );
    const without = { ...reportOf('x'), applications: [{ ...EMPTY, base: undefined }] };
    expect(parseReport(reportJson(without))).toEqual(without);
  });

  it.each([
    ['{', /is no JSON/],
    ['[]', /is not one of version 1/],
    [JSON.stringify({ ...reportOf('x'), version: 2 }), /is not one of version 1: version: /],
    [JSON.stringify({ ...reportOf('x'), colour: 'Green' }), /Unrecognized key/],
    [JSON.stringify({ ...reportOf('x'), notCovered: [1] }), /notCovered\.0/],
  ])('that is something else is refused: %s', (json, words) => {
    expect(() => parseReport(json)).toThrow(words);
  });
});

describe('the colour', () => {
  const with1 = (one: Partial<ApplicationReport>): GateReport => ({
    ...reportOf('x'),
    notCovered: [],
    applications: [{ ...EMPTY, ...one }],
  });
  const ref = { apiVersion: 'v1', kind: 'Pod', name: 'a' };

  it('is green for what is new, changed or another version', () => {
    const more = {
      added: [ref],
      changed: [{ ...ref, fields: [], more: 1 }],
      images: [{ from: 'a', to: 'b' }],
    };
    const defaults = [
      { key: 'a', from: '1', to: '2' },
      { key: 'b', to: 'true' },
    ];
    expect(gateColour(with1({ ...more, defaults, relabelled: 3 }))).toEqual({ colour: 'Green' });
  });

  const dropped = { crd: 'a', group: 'a', kind: 'A', versions: ['v1'], target: undefined };
  it.each<[string, Partial<ApplicationReport>]>([
    ['targeting', { targeting: [{ what: 'Cluster', from: 'a', to: 'b' }] }],
    ['apiVersion', { apiVersionMoves: [{ ...ref, from: 'v0' }] }],
    ['consumers', { droppedVersions: [{ ...dropped, consumers: [{ path: 'a', line: 1, object: 'A' }] }] }],
    ['valuesDropped', { valuesNotDeclared: ['a'] }],
    ['unrenderable', { unrenderable: { base: 'no' } }],
    ['schema', { schemaRefusals: ['a', 'b'] }],
    ['lost', { removed: [ref] }],
    ['lost', { defaults: [{ key: 'a', from: 'true', to: 'false' }] }],
  ])('is red for one of %s', (key, one) => {
    const report = with1(one);
    expect(gateCounts(report)).toMatchObject({ [key]: 1 });
    expect(Object.values(gateCounts(report)).reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(gateColour(report)).toMatchObject({ colour: 'Red', why: [expect.stringMatching(/^1 /)] });
  });

  it('is red for what was not looked at', () => {
    expect(gateColour({ ...with1({}), notCovered: ['x'] }).colour).toBe('Red');
  });
});
