import { describe, expect, it } from 'vitest';
import { aReport } from '../../../test/builders/gate-report.ts';
import { aTree } from '../../../test/builders/tree.ts';
import { type Levers, without } from '../levers.ts';
import type { Answer } from '../port.ts';
import { triageText } from '../prompts/verdict-question.ts';
import { triage } from './triage.ts';

const TEXT = 'image:\n  tag: 1.0.0\nfrr:\n  enabled: true\n';
const PATH = 'apps/web.yaml';
const edit = (key: string, from: string, to: string) => ({ path: PATH, key, from, to, rationale: 'r' });
const verdict = (over: object = {}) => ({
  classification: 'mechanical',
  summary: 'Pin it back',
  reasoning: 'because',
  edits: [edit('frr.enabled', 'true', 'false')],
  escalationReason: '',
  ...over,
});

async function triaged(
  value: unknown,
  report = aReport(),
  options: { readonly levers?: Levers; readonly allOrNothing?: boolean; readonly reportText?: string } = {},
) {
  const answer: Answer = { kind: 'Answered', value };
  return await triage(
    {
      bump: { project: 'group/app', iid: 7, title: 'Move web' },
      head: aTree({ [PATH]: TEXT }),
      report,
      reportText: options.reportText ?? '# Gate report\n',
      live: undefined,
      policy: { allow: ['apps/**'], deny: [], allOrNothing: options.allOrNothing ?? true },
    },
    { triage: async (question) => ({ answer, shown: triageText(question) }) },
    undefined,
    options.levers,
  );
}

describe('triage', () => {
  it('makes a fix of a mechanical verdict whose edits pass every check', async () => {
    const found = await triaged(verdict());
    expect(found).toMatchObject({ kind: 'Fix', rejected: [] });
    expect(found.kind === 'Fix' && new TextDecoder().decode(found.files[0]?.bytes)).toBe(
      TEXT.replace('enabled: true', 'enabled: false'),
    );
  });

  it('lever 3: a version is written only when the material has it', async () => {
    const edits = [edit('image.tag', '1.0.0', '1.5.1')];
    expect(await triaged(verdict({ edits }))).toMatchObject({
      kind: 'Escalate',
      rejected: [{ reason: 'NotCorroborated' }],
    });
    expect(await triaged(verdict({ edits }), aReport(), { reportText: 'needs 1.5.1' })).toMatchObject({
      kind: 'Fix',
    });
    expect(await triaged(verdict({ edits }), aReport(), { reportText: 'needs 1.5.10' })).toMatchObject({
      kind: 'Escalate',
    });
  });

  it('BR-46, lever 4: a fix of which nothing was applied is an escalation that tells every refusal', async () => {
    const edits = [edit('frr.enabled', 'yes', 'false'), edit('frr.mode', 'a', 'b')];
    expect(await triaged(verdict({ edits }))).toMatchObject({
      kind: 'Escalate',
      reason: 'the proposed edits were refused',
      verdict: { summary: 'Pin it back' },
      rejected: [{ reason: 'Stale' }, { reason: 'UnknownKey' }],
    });
    expect(await triaged(verdict({ edits }), aReport(), { levers: without('emptyEscalates') })).toMatchObject(
      {
        kind: 'Fix',
        files: [],
      },
    );
  });

  it('G10: one refused edit withholds the others, unless the configuration lets them through', async () => {
    const edits = [edit('frr.enabled', 'true', 'false'), edit('image.tag', '0.9.0', '1.0.1')];
    expect(await triaged(verdict({ edits }))).toMatchObject({
      kind: 'Escalate',
      withheld: [{ key: 'frr.enabled' }],
    });
    expect(await triaged(verdict({ edits }), aReport(), { allOrNothing: false })).toMatchObject({
      kind: 'Fix',
      applied: [{ key: 'frr.enabled' }],
    });
  });

  it('lever 5: no edit lands while something moved that no version can move', async () => {
    const report = aReport({ targeting: [{ what: 'Namespace', from: 'a', to: 'b' }] });
    expect(await triaged(verdict(), report)).toMatchObject({
      kind: 'Escalate',
      reason: 'a namespace moved, which no version brings about',
      rejected: [],
    });
  });

  it('G2: nothing outside of what the merge request changes is edited', async () => {
    expect(await triaged(verdict(), aReport({}, { changedFiles: [] }))).toMatchObject({
      kind: 'Escalate',
      rejected: [{ reason: 'PathDenied' }],
    });
  });

  it('names a file that is too large to be listed, and edits nothing in it', async () => {
    const text = `${TEXT}# ${'x'.repeat(5 * 1024 * 1024)}\n`;
    let shown = '';
    const found = await triage(
      {
        bump: { project: 'group/app', iid: 7, title: 'Move web' },
        head: aTree({ [PATH]: text }),
        report: aReport(),
        reportText: '',
        live: undefined,
        policy: { allow: ['apps/**'], deny: [], allOrNothing: true },
      },
      {
        async triage(question) {
          shown = triageText(question);
          return { answer: { kind: 'Answered', value: verdict() }, shown };
        },
      },
    );
    expect(shown).toMatch(/FILE apps\/web.yaml -- not described: has 52\d+ bytes, more than is read/);
    expect(found).toMatchObject({ kind: 'Escalate', rejected: [{ reason: 'Unreadable' }] });
  });

  it.each([
    ['no_action', 'NoAction'],
    ['escalate', 'Escalate'],
  ])('takes %s as it is, and makes no edit that comes with it', async (classification, kind) => {
    expect(await triaged(verdict({ classification, escalationReason: 'major' }))).toMatchObject({ kind });
  });

  it.each([
    ['no verdict', { text: 'hello' }, /has not the fields/],
    ['no edits', verdict({ edits: [] }), /proposes no edit/],
  ])('escalates without a judgement when there is %s', async (_, value, reason) => {
    const found = await triaged(value);
    expect(found).toMatchObject({ kind: 'Escalate', verdict: undefined });
    expect(found.kind === 'Escalate' && found.reason).toMatch(reason);
  });
});
