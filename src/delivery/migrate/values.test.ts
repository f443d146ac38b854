import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import type { Answer, HelmRequest, HelmResult } from '../port.ts';
import type { ValuesQuestion } from './questions.ts';
import { migrateValues, type ValuesApplication, type ValuesRequest } from './values.ts';

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    web: {
      type: 'object',
      additionalProperties: false,
      properties: { listenPort: { type: 'integer' }, host: { type: 'string' } },
    },
    probe: { type: 'object' },
  },
};
const VALUES =
  '# ours\nweb:\n  port: 8080 # for the balancer\n  host: a\nmode: strict\nprobe:\n  tcp: null\n';
const PROPOSED = 'web:\n  host: a\n  listenPort: 8080\nprobe:\n  tcp: null\n';
const PATH = 'apps/values.yaml';

const anApplication = (over: Partial<ValuesApplication> = {}): ValuesApplication => ({
  name: 'Application argocd/web',
  chart: 'web',
  from: '1.0.0',
  to: '2.0.0',
  oldSchema: undefined,
  newSchema: JSON.stringify(SCHEMA),
  newDefaults: '',
  request: { chart: new Uint8Array(), values: [VALUES], release: 'web', namespace: 'web' },
  candidates: [PATH],
  ...over,
});

async function migrated(
  answer: string | Answer,
  options: {
    readonly files?: Readonly<Record<string, string>>;
    readonly applications?: readonly ValuesApplication[];
    readonly policy?: ValuesRequest['policy'];
    readonly helm?: (request: HelmRequest) => HelmResult;
  } = {},
) {
  const questions: ValuesQuestion[] = [];
  const rendered: HelmRequest[] = [];
  const outcome = await migrateValues(
    {
      tree: aTree(options.files ?? { [PATH]: VALUES }),
      policy: options.policy ?? { allow: ['apps/**'], deny: [] },
      applications: options.applications ?? [anApplication()],
    },
    {
      async template(request) {
        rendered.push(request);
        return options.helm?.(request) ?? { kind: 'Rendered', manifests: '' };
      },
    },
    async (question) => {
      questions.push(question);
      return typeof answer === 'string'
        ? { kind: 'Answered', value: { document: answer, notes: 'port is listenPort now' } }
        : answer;
    },
  );
  const text =
    outcome.kind === 'Migrated'
      ? new TextDecoder().decode(outcome.files[0]?.bytes)
      : outcome.reasons.join('\n');
  return { outcome, text, questions, rendered };
}

describe('migrateValues', () => {
  it('renames what the chart renamed, drops what it dropped, and names what was lost', async () => {
    const { outcome, text, questions } = await migrated(PROPOSED);
    expect(text).toBe(
      '# ours\nweb:\n  listenPort: 8080 # for the balancer\n  host: a\nprobe:\n  tcp: null\n',
    );
    expect(outcome).toMatchObject({
      kind: 'Migrated',
      applications: [{ path: PATH, notes: 'port is listenPort now' }],
      lost: [{ where: 'Application argocd/web', key: 'mode', value: 'strict' }],
    });
    expect(
      questions[0]?.vacancies.map(({ refused, free }) => [refused.join('.'), free?.map(({ key }) => key)]),
    ).toEqual([
      ['mode', []],
      ['web.port', ['listenPort']],
    ]);
  });

  it('G12: helm templates the chart with the proposal before it is taken', async () => {
    const { rendered } = await migrated(PROPOSED);
    expect(rendered).toHaveLength(1);
    expect(rendered[0]?.values[0]).toContain('listenPort: 8080');
    const { text } = await migrated(PROPOSED, {
      helm: () => ({ kind: 'SchemaRefused', message: 'still no' }),
    });
    expect(text).toBe('Application argocd/web: helm refuses the proposal: still no');
  });

  it('G11, BR-56: refuses a proposal that drops a null', async () => {
    const { text } = await migrated(PROPOSED.replace('probe:\n  tcp: null\n', ''));
    expect(text).toMatch(/probe.tcp is still taken by the chart and has to stay null/);
  });

  it('works inside a manifest', async () => {
    const manifest = `kind: Application\nspec:\n  source:\n    helm:\n      valuesObject:\n${VALUES.replaceAll(/^(?=.)/gm, '        ')}`;
    const { text } = await migrated(PROPOSED, { files: { [PATH]: manifest } });
    expect(text).toContain('          listenPort: 8080 # for the balancer\n');
    expect(text).not.toContain('mode');
  });

  it('G13: writes a plan of two documents, so the text of the answer does not matter', async () => {
    const { text } = await migrated('{"probe": {"tcp": null}, "web": {"listenPort": 8080, "host": "a"}}');
    expect(text).toBe((await migrated(PROPOSED)).text);
  });

  it.each<[string, Parameters<typeof migrated>[1], RegExp]>([
    [
      'there is no schema',
      { applications: [anApplication({ newSchema: undefined })] },
      /no values.schema.json/,
    ],
    ['the schema is no JSON', { applications: [anApplication({ newSchema: '{' })] }, /no values.schema.json/],
    [
      'the schema has nothing against the values',
      { applications: [anApplication({ newSchema: '{}' })] },
      /for a reason that its schema does not show/,
    ],
    [
      'somebody has to decide',
      {
        applications: [
          anApplication({
            newSchema: JSON.stringify({
              ...SCHEMA,
              required: ['region'],
              properties: { ...SCHEMA.properties, region: { type: 'string' } },
            }),
          }),
        ],
      },
      /somebody has to decide on region/,
    ],
    [
      'readers disagree on the values',
      { applications: [anApplication({ request: { ...anApplication().request, values: ['mode: yes\n'] } })] },
      /the values has yes, which/,
    ],
  ])('asks no model when %s', async (_, options, reason) => {
    const { text, questions } = await migrated(PROPOSED, options);
    expect(text).toMatch(reason);
    expect(questions).toEqual([]);
  });

  it('counts what the new chart itself sets as there', async () => {
    const schema = {
      ...SCHEMA,
      required: ['region'],
      properties: { ...SCHEMA.properties, region: { type: 'string', enum: ['eu', 'us'] } },
    };
    const application = anApplication({ newSchema: JSON.stringify(schema), newDefaults: 'region: eu\n' });
    expect((await migrated(PROPOSED, { applications: [application] })).outcome.kind).toBe('Migrated');
  });

  it.each<[string, Parameters<typeof migrated>[1], RegExp]>([
    ['no file sets them', { files: { [PATH]: 'a: 1\n' } }, /no file sets all of them/],
    [
      'two places set them',
      {
        files: {
          [PATH]: `one:\n${VALUES.replaceAll(/^(?=.)/gm, '  ')}two:\n${VALUES.replaceAll(/^(?=.)/gm, '  ')}`,
        },
      },
      /2 places set them/,
    ],
    [
      'they come from several files',
      {
        applications: [
          anApplication({
            request: { ...anApplication().request, values: ['extra: {}\n', VALUES] },
            newSchema: JSON.stringify({
              ...SCHEMA,
              properties: { ...SCHEMA.properties, extra: { type: 'object' } },
            }),
          }),
        ],
      },
      /still taken|several places/,
    ],
    ['the file is denied', { policy: { allow: ['apps/**'], deny: [PATH] } }, /may not be edited/],
  ])('refuses when %s', async (_, options, reason) => {
    expect((await migrated(PROPOSED, options)).text).toMatch(reason);
  });

  it('G10: one refusal refuses the whole pass', async () => {
    const { outcome } = await migrated(PROPOSED, {
      applications: [anApplication(), anApplication({ name: 'other', newSchema: undefined })],
    });
    expect(outcome).toEqual({ kind: 'Refused', reasons: [expect.stringMatching(/^other: the new chart/)] });
  });
});
