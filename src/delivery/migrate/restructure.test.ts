import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import type { DroppedVersion } from '../gate/report.ts';
import type { Answer } from '../port.ts';
import type { Schema } from '../structural/schema.ts';
import type { RestructureQuestion } from './questions.ts';
import { type RestructureRequest, restructure } from './restructure.ts';

const GROUP = 'stores.example.org';
const AFTER: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['ref'],
      properties: {
        ref: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
        interval: { type: 'string' },
      },
    },
  },
};
const manifest = (version: string, spec: string): string =>
  `# of the team\napiVersion: ${GROUP}/${version}\nkind: Secretive\nmetadata:\n  name: db\nspec:\n${spec}`;
const OLD = manifest('v1beta1', '  storeName: vault # ours\n  interval: 5m\n');
const PROPOSED = manifest('v1', '  ref:\n    name: vault\n  interval: 5m\n');

const dropped = (paths: readonly string[], target: string | undefined = 'v1'): DroppedVersion => ({
  crd: `secretives.${GROUP}`,
  group: GROUP,
  kind: 'Secretive',
  versions: ['v1beta1'],
  target,
  consumers: paths.map((path) => ({ path, line: 2, object: 'Secretive/db' })),
});

async function restructured(
  files: Readonly<Record<string, string>>,
  answers: readonly (string | Answer)[] = [],
  over: Partial<RestructureRequest> = {},
) {
  const questions: RestructureQuestion[] = [];
  const outcome = await restructure(
    {
      tree: aTree(files),
      dropped: [dropped(Object.keys(files).filter((path) => path.endsWith('.yaml')))],
      policy: { allow: ['**/*.yaml', 'apps/**', 'chart/**'], deny: [] },
      schemasOf: () => ({ before: undefined, after: AFTER }),
      maxDocuments: 5,
      ...over,
    },
    async (question) => {
      const answer = answers[questions.length] ?? { kind: 'Unreachable', message: 'nobody is there' };
      questions.push(question);
      return typeof answer === 'string'
        ? { kind: 'Answered', value: { document: answer, notes: 'moved the name' } }
        : answer;
    },
  );
  const texts =
    outcome.kind === 'Migrated'
      ? Object.fromEntries(outcome.files.map(({ path, bytes }) => [path, new TextDecoder().decode(bytes)]))
      : {};
  return { outcome, texts, questions };
}

describe('restructure', () => {
  it('swaps a version and asks nobody when the document fits', async () => {
    const text = manifest('v1beta1', '  ref: {name: vault}\n');
    const { outcome, texts, questions } = await restructured({ 'apps/a.yaml': text });
    expect(outcome).toMatchObject({ kind: 'Migrated', documents: [{ kind: 'Fits', lines: [2] }], lost: [] });
    expect(texts).toEqual({ 'apps/a.yaml': text.replace('v1beta1', 'v1') });
    expect(questions).toEqual([]);
  });

  it('lets the model reshape what no longer fits, and writes as few lines as that takes', async () => {
    const { outcome, texts, questions } = await restructured({ 'apps/a.yaml': OLD }, [PROPOSED]);
    expect(questions).toMatchObject([{ path: 'apps/a.yaml', newSchema: AFTER }]);
    expect(questions[0]?.document).toContain(`apiVersion: ${GROUP}/v1\n`);
    expect(outcome).toMatchObject({
      kind: 'Migrated',
      documents: [{ kind: 'Reshaped', object: 'Secretive/db', notes: 'moved the name' }],
    });
    expect(texts['apps/a.yaml']).toBe(
      `# of the team\napiVersion: ${GROUP}/v1\nkind: Secretive\nmetadata:\n  name: db\nspec:\n  interval: 5m\n  ref:\n    name: vault\n`,
    );
  });

  it('writes a document anew whose style has no lines to change', async () => {
    const flow = `a: 1\n---\n{apiVersion: ${GROUP}/v1beta1, kind: Secretive}\n`;
    const { outcome } = await restructured({ 'apps/a.yaml': flow });
    expect(outcome).toMatchObject({ kind: 'Refused', reasons: [expect.stringMatching(/in a form/)] });
    const inside = manifest('v1beta1', '  {storeName: vault, interval: 5m}\n');
    const { texts } = await restructured({ 'apps/a.yaml': `a: 1\n---\n${inside}---\nb: 2\n` }, [PROPOSED]);
    expect(texts['apps/a.yaml']).toMatch(/^a: 1\n---\n.*ref:\n {4}name: vault\n.*\n---\nb: 2\n$/s);
  });

  it('names what was lost and what was respelled', async () => {
    const text = manifest('v1beta1', '  storeName: vault\n  interval: 5m\n  token: abc\n');
    const { outcome } = await restructured({ 'apps/a.yaml': text }, [PROPOSED]);
    expect(outcome).toMatchObject({
      kind: 'Migrated',
      lost: [{ where: 'apps/a.yaml', key: 'spec.token', value: 'abc' }],
    });
  });

  it.each<[string, string | Answer, RegExp]>([
    ['makes up a value', PROPOSED.replace('name: vault', 'name: other'), /spec.ref.name has "other"/],
    ['renames the object', PROPOSED.replace('name: db', 'name: db2'), /metadata.name may not change/],
    ['does not fit', PROPOSED.replace('  interval', '  intervall'), /intervall is not a field/],
    ['is no YAML', 'a: [', /proposes is not YAML/],
    ['has two documents', `${PROPOSED}---\na: 1\n`, /proposes has 2 documents/],
    ['is no mapping', '- a\n', /is no mapping/],
    ['has not the fields', { kind: 'Answered', value: { text: 'hello' } }, /has not the fields/],
    [
      'argues with a field more',
      { kind: 'Answered', value: { document: PROPOSED, notes: '', force: true } },
      /has not the fields/,
    ],
    ['never comes', { kind: 'Unreachable', message: 'timeout' }, /could not be reached: timeout/],
    ['is no JSON', { kind: 'Malformed', message: 'prose' }, /is no JSON/],
  ])('G10: writes nothing at all when one answer %s', async (_, answer, reason) => {
    const files = { 'apps/a.yaml': OLD, 'apps/b.yaml': manifest('v1beta1', '  ref: {name: x}\n') };
    const { outcome } = await restructured(files, [answer]);
    expect(outcome).toMatchObject({ kind: 'Refused' });
    if (outcome.kind === 'Refused') expect(outcome.reasons.join('\n')).toMatch(reason);
  });

  it.each<[string, Readonly<Record<string, string>>, Partial<RestructureRequest>, RegExp]>([
    [
      'a denied path',
      { 'apps/a.yaml': OLD },
      { policy: { allow: ['apps/**'], deny: ['apps/a.yaml'] } },
      /may not be edited/,
    ],
    [
      'a path that nobody allowed',
      { 'apps/a.yaml': OLD },
      { policy: { allow: [], deny: [] } },
      /may not be edited/,
    ],
    [
      'a template of a chart',
      { 'chart/Chart.yaml': 'name: x\n', 'chart/templates/a.yaml': OLD },
      { dropped: [dropped(['chart/templates/a.yaml'])] },
      /template of a chart/,
    ],
    [
      'a kind that is gone altogether',
      { 'apps/a.yaml': OLD },
      { dropped: [{ ...dropped(['apps/a.yaml']), target: undefined }] },
      /gone altogether/,
    ],
    ['more documents than are allowed', { 'apps/a.yaml': OLD }, { maxDocuments: 0 }, /no more documents/],
    ['a document that readers disagree on', { 'apps/a.yaml': `${OLD}  on: yes\n` }, {}, /nobody can tell/],
  ])('refuses %s', async (_, files, over, reason) => {
    const { outcome, questions } = await restructured(files, [PROPOSED], over);
    expect(outcome).toMatchObject({ kind: 'Refused' });
    if (outcome.kind === 'Refused') expect(outcome.reasons.join('\n')).toMatch(reason);
    expect(questions).toEqual([]);
  });

  it('reports documents that stand inside others, and does not reshape them', async () => {
    const inside = `data:\n  a.yaml: |\n${OLD.replaceAll(/^(?=.)/gm, '    ')}`;
    const { outcome, questions } = await restructured({ 'apps/a.yaml': inside });
    expect(outcome).toMatchObject({ kind: 'Migrated', documents: [{ kind: 'NotJudged' }] });
    expect(questions).toEqual([]);
  });

  it('asks for as many documents as it may', async () => {
    const files = { 'apps/a.yaml': OLD, 'apps/b.yaml': OLD, 'apps/c.yaml': OLD };
    const { outcome, questions } = await restructured(files, [PROPOSED, PROPOSED, PROPOSED], {
      maxDocuments: 2,
    });
    expect(questions).toHaveLength(2);
    expect(outcome).toMatchObject({
      kind: 'Refused',
      reasons: [expect.stringMatching(/apps\/c.yaml.*no more/)],
    });
  });
});
