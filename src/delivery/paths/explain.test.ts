import { describe, expect, it } from 'vitest';
import { aReport } from '../../../test/builders/gate-report.ts';
import type { Answer } from '../port.ts';
import { explain } from './explain.ts';

const value = { classification: 'no_action', summary: 's', reasoning: 'r', edits: [], escalationReason: '' };
const explained = (answer: Answer) =>
  explain(
    {
      bump: { project: 'group/app', iid: 7, title: 'Move web' },
      report: aReport(),
      reportText: '',
      live: undefined,
      testimony: {},
    },
    { explain: async () => ({ answer, shown: '' }) },
  );

describe('explain', () => {
  it.each([
    ['no_action', false],
    ['escalate', true],
    ['mechanical', true],
  ])('%s: asks for a look %s', async (classification, look) => {
    expect(await explained({ kind: 'Answered', value: { ...value, classification } })).toMatchObject({
      kind: 'Explained',
      look,
    });
  });

  it('ignores edits whatever comes back', async () => {
    const edits = [{ path: 'a', key: 'b', from: 'c', to: 'd', rationale: 'e' }];
    expect(await explained({ kind: 'Answered', value: { ...value, edits } })).toMatchObject({
      kind: 'Explained',
      verdict: { edits: [] },
    });
    expect(await explained({ kind: 'Answered', value: { ...value, edits: 'nonsense' } })).toMatchObject({
      kind: 'Explained',
    });
  });

  it('is never fatal', async () => {
    expect(await explained({ kind: 'Unreachable', message: 'timeout' })).toMatchObject({ kind: 'None' });
    expect(await explained({ kind: 'Answered', value: null })).toMatchObject({ kind: 'None' });
  });
});
