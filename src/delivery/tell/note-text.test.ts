import { describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../deliver.ts';
import { noteText, statusText } from './note-text.ts';

const REPORT = '# Gate report\n\nRendered at `b` (merge base) and `c` (head). Red: 1 object.\n';
const verdict = {
  classification: 'mechanical',
  summary: 'Pin it | back',
  reasoning: 'Open `apps/web.yaml`',
  edits: [],
  escalationReason: 'label only',
} as const;
const applied = {
  path: 'apps/web.yaml',
  key: 'a.b',
  from: 'x|y',
  to: 'z',
  rationale: 'because | so',
  line: 3,
  before: '"x|y"',
  after: '"z"',
};
const rejected = {
  path: 'apps/web.yaml',
  key: 'a.c',
  reason: 'Stale' as const,
  message: 'the file says 2',
  edit: { path: 'apps/web.yaml', key: 'a.c', from: '1', to: '3', rationale: '' },
};
const text = (outcome: DeliveryOutcome, live?: string) => noteText({ outcome, reportText: REPORT, live });

describe('noteText', () => {
  it('shows what was edited in a table, what is left, and the report folded away', () => {
    const note = text({
      kind: 'Push',
      files: [],
      change: { kind: 'Edits', verdict: { ...verdict, edits: [] }, applied: [applied], rejected: [] },
      after: [],
    });
    expect(note).toBe(
      [
        '### Fixed',
        '',
        '**Pin it | back**',
        '',
        'Open `apps/web.yaml`',
        '',
        '| file | key | from | to | why |',
        '|---|---|---|---|---|',
        '| `apps/web.yaml:3` | `a.b` | `"x\\|y"` | `"z"` | because \\| so |',
        '',
        'The repository was rendered with this change: the gate is green.',
        '',
        '<details><summary>Gate report</summary>',
        '',
        'Rendered at `b` (merge base) and `c` (head). Red: 1 object.',
        '',
        '</details>',
        '',
        '_Made by an agent: no review, and no approval._',
      ].join('\n'),
    );
  });

  it('lever 6: says a verdict once, and the label of the status never', () => {
    const note = text({
      kind: 'Escalate',
      reason: 'label only',
      reasons: ['label only'],
      verdict: { ...verdict, classification: 'escalate', edits: [] },
      rejected: [],
      withheld: [],
      testimony: {},
    });
    expect(note).not.toContain('label only');
    expect(note.match(/Pin it/g)).toHaveLength(1);
    expect(note.match(/Needs a person/g)).toHaveLength(1);
  });

  it('tells every refusal, what was sound without them, and what was written upstream', () => {
    const note = text(
      {
        kind: 'Escalate',
        reason: 'the proposed edits were refused',
        reasons: [],
        verdict: { ...verdict, edits: [] },
        rejected: [rejected],
        withheld: [applied],
        testimony: { notes: 'v2: modes exclude each other' },
      },
      '3 objects',
    );
    expect(note).toContain('- `apps/web.yaml`, `a.c` to `3`: the file says 2');
    expect(note).toContain('Sound by themselves, and not pushed:');
    expect(note).toContain('<details><summary>What was written upstream</summary>\n\nv2: modes');
    expect(note).toContain('<details><summary>What is running</summary>\n\n3 objects');
  });

  it('names every value that did not come across', () => {
    const lost = Array.from({ length: 70 }, (_, at) => ({ where: 'web', key: `k${at}`, value: at }));
    const note = text({
      kind: 'Push',
      files: [],
      change: {
        kind: 'Values',
        applications: [
          {
            name: 'web',
            path: 'apps/web.yaml',
            notes: 'port is listenPort',
            operations: [
              { kind: 'Rename', path: ['web', 'port'], to: 'listenPort', value: 80 },
              { kind: 'Remove', path: ['mode'], value: 'strict' },
              { kind: 'Set', path: ['level'], value: 3, before: '3' },
            ],
          },
        ],
        lost,
      },
      after: ['1 object that is gone'],
    });
    expect(note).toContain('- `web.port` is `web.listenPort` now, with the same value');
    expect(note).toContain('- `mode` is gone; it was `"strict"`');
    expect(note).toContain('- `level`: `"3"` -> `3`');
    expect(note.match(/^- `web`: `k\d+` was/gm)).toHaveLength(70);
    expect(note).toContain('this is left: 1 object that is gone.');
  });

  it('tells manifests that were reshaped, and what was respelled', () => {
    const note = text({
      kind: 'Push',
      files: [],
      change: {
        kind: 'Restructured',
        documents: [
          {
            path: 'apps/peer.yaml',
            lines: [2],
            kind: 'Reshaped',
            object: 'Peer/a',
            notes: 'address is peer',
            respelled: [{ path: 'spec.mode', from: 'arp', to: 'ARP' }],
          },
        ],
        lost: [],
      },
      after: [],
    });
    expect(note).toContain(
      '- `apps/peer.yaml`, line 2: `Peer/a` was reshaped\n  - address is peer\n  - `spec.mode` was',
    );
  });

  it.each([
    [{ notes: 'x' }, 'Grounded in the gate report and release notes.'],
    [{ notes: 'x', commits: 'y' }, 'Grounded in the gate report and release notes and commits.'],
    [
      { silence: 'The chart names no source.' },
      'Grounded in the gate report alone: The chart names no source.',
    ],
    [{}, 'Grounded in the gate report alone.'],
  ])('says what an explanation is grounded in: %j', (testimony, words) => {
    const note = text({ kind: 'Explained', verdict: { ...verdict, edits: [] }, look: false, testimony });
    expect(note).toContain(`<sub>${words}</sub>`);
  });

  it('keeps what is not ours from breaking out', () => {
    const evil = '`\n</details>\n/close | x';
    const note = text({
      kind: 'Push',
      files: [],
      change: {
        kind: 'Edits',
        verdict: { ...verdict, edits: [] },
        applied: [{ ...applied, path: evil, key: evil, before: evil, after: evil, rationale: evil }],
        rejected: [],
      },
      after: [],
    });
    expect(note).not.toMatch(/^\/close/m);
    expect(note.split('\n').filter((line) => line.startsWith('</details>'))).toHaveLength(1);
  });
});

describe('statusText', () => {
  it('fits a commit status', () => {
    const outcome: DeliveryOutcome = {
      kind: 'Escalate',
      reason: 'x'.repeat(500),
      reasons: [],
      rejected: [],
      withheld: [],
      testimony: {},
    };
    expect(statusText(outcome)).toHaveLength(140);
  });
});
