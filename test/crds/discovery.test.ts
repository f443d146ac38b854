import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFINITIONS } from '../../src/crds/definitions.ts';
import { GROUP, VERSION } from '../../src/crds/meta.ts';
import { cleanUp, kubectl, type Namespaces, prepare, tryKubectl } from './kubectl.ts';
import { changed, type Manifest, SAMPLES, sample, set } from './objects.ts';

let namespaces: Namespaces;
beforeAll(async () => {
  namespaces = await prepare();
  for (const name of SAMPLES) await kubectl(['create', '-f', '-'], await sample(name, namespaces));
});
afterAll(() => cleanUp(namespaces));

const agents = (): readonly string[] => ['-n', namespaces.agents];
const pool = (): readonly string[] => ['-n', namespaces.sandboxes];

async function patchStatus(target: readonly string[], status: unknown): Promise<void> {
  await kubectl([
    'patch',
    ...target,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  ]);
}

/** Rows of a table by the columns' names; columns are as wide as the header says. */
function table(output: string): readonly Readonly<Record<string, string>>[] {
  const [header = '', ...lines] = output.trimEnd().split('\n');
  const columns = [...header.matchAll(/\S+\s*/g)].map(({ 0: title, index }) => ({
    title: title.trim(),
    index,
  }));
  return lines.map((line) =>
    Object.fromEntries(
      columns.map(({ title, index }, n) => [title, line.slice(index, columns[n + 1]?.index).trim()]),
    ),
  );
}

describe('the CRDs', () => {
  it.each(DEFINITIONS.map(({ kind }) => `${kind.plural}.${GROUP}`))(
    '%s is established and structural',
    async (name) => {
      const { status } = JSON.parse(await kubectl(['get', 'crd', name, '-o', 'json']));
      const conditions = Object.fromEntries(
        status.conditions.map((one: { type: string; status: string }) => [one.type, one.status]),
      );
      expect(conditions).toEqual({ NamesAccepted: 'True', Established: 'True' });
    },
  );

  it('are applied again without a change', async () => {
    // By name: other tests bring kinds of their own.
    const names = DEFINITIONS.map(({ kind }) => `${kind.plural}.${GROUP}`);
    const generations = () =>
      kubectl(['get', 'crd', ...names, '-o', 'jsonpath={.items[*].metadata.generation}']);
    const before = await generations();
    await prepare().then(cleanUp);
    expect(await generations()).toBe(before);
  });

  it.each(DEFINITIONS.map(({ shortName, kind }) => [shortName, kind.kind]))(
    '%s is short for %s',
    async (short, kind) => {
      expect(await kubectl(['explain', short])).toMatch(new RegExp(`^KIND:\\s+${kind}$`, 'm'));
    },
  );

  it('all answer to their category', async () => {
    const names = await kubectl(['get', 'hummingbird', ...agents(), '-o', 'name']);
    expect(
      names
        .trim()
        .split('\n')
        .map((name) => name.split('/')[0]),
    ).toEqual([`agentrun.${GROUP}`, `agentsession.${GROUP}`, `agentworkflow.${GROUP}`]);
  });
});

describe('kubectl explain', () => {
  it('has a description for every field that the API server publishes', async () => {
    const document = JSON.parse(await kubectl(['get', '--raw', `/openapi/v3/apis/${GROUP}/${VERSION}`]));
    const schemas = Object.entries<Record<string, unknown>>(document.components.schemas).filter(([name]) =>
      name.startsWith('dev.hummingbird'),
    );
    const kinds = schemas.filter(([name]) => !name.endsWith('List'));
    expect(kinds).toHaveLength(DEFINITIONS.length);
    const all = kinds.flatMap(([name, schema]) => fields(schema, name.split('.').at(-1) ?? ''));
    expect(all.length).toBeGreaterThan(250);
    expect(all.filter(({ description }) => description === '').map(({ path }) => path)).toEqual([]);
  });

  it.each([
    ['arun.spec.limits.budgetUSD', /US dollars/],
    ['arun.status.holder.epoch', /only grows/],
    ['asess.status.archive.sha256', /SHA-256/],
    ['awf.spec.model.provider', /OpenAICompatible/],
    ['awf.spec.projects.actionTokenSecretRef.name', /token-tier: action/],
    ['awf.spec.delivery.edits.allOrNothing', /one refused edit refuses them all/],
    ['spool.spec.egressProbe.enabled', /shown to reach no network/],
    ['spool.spec.virtualMachineInstance.ssh.user', /default sandbox/],
  ])('%s says it', async (path, words) => {
    const shown = (await kubectl(['explain', path])).replace(/\s+/g, ' ');
    expect(shown).toMatch(words);
  });
});

describe('kubectl get', () => {
  const RUN_STATUS = {
    phase: 'Succeeded',
    mergeRequest: 'group/app!42',
    iterations: 7,
    costUSD: '0.12',
    model: 'demo-script',
    session: 'session-1',
    sha: 'a'.repeat(40),
    duration: '4m07s',
    note: { discussionId: 'd', noteId: 815, url: 'https://gitlab.example.org/x#note_815' },
    sandbox: { kind: 'PodPool', name: 'analysis-1', namespace: 'sandboxes' },
    conditions: [
      {
        type: 'Admitted',
        status: 'True',
        reason: 'Admitted',
        message: '',
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
      {
        type: 'Succeeded',
        status: 'True',
        reason: 'Partial',
        message: '',
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
    ],
  };

  it('shows a run at once, before anybody has looked at it', async () => {
    const [row] = table(await kubectl(['get', 'agentruns', ...agents(), '-o', 'wide']));
    expect(row).toMatchObject({
      NAME: 'try-it',
      WORKFLOW: 'analyze-failures',
      PROJECT: 'group/app',
      IID: '42',
      PHASE: '',
    });
  });

  it('shows what came of a run, and wait ends on its condition', async () => {
    await patchStatus(['arun/try-it', ...agents()], RUN_STATUS);
    const [row] = table(await kubectl(['get', 'agentruns', ...agents()]));
    expect(row).toEqual({
      NAME: 'try-it',
      WORKFLOW: 'analyze-failures',
      MR: 'group/app!42',
      PHASE: 'Succeeded',
      REASON: 'Partial',
      ITER: '7',
      COST: '0.12',
      NOTE: '815',
      AGE: expect.stringMatching(/^\d/),
    });
    const [wide] = table(await kubectl(['get', 'agentruns', ...agents(), '-o', 'wide']));
    expect(wide).toMatchObject({
      MODEL: 'demo-script',
      SANDBOX: 'analysis-1',
      SESSION: 'session-1',
      SHA: 'a'.repeat(40),
      DURATION: '4m07s',
    });
    await kubectl(['wait', '--for=condition=Succeeded', '--timeout=10s', 'arun/try-it', ...agents()]);
  });

  it('shows what a pool, a workflow and a session are about', async () => {
    const [narrow] = table(await kubectl(['get', 'spool', ...pool()]));
    expect(Object.keys(narrow ?? {})).toEqual([
      ...['NAME', 'READY', 'CLAIMED', 'LINGERING', 'DESIRED', 'EGRESS', 'AGE'],
    ]);
    const [spool] = table(await kubectl(['get', 'spool', ...pool(), '-o', 'wide']));
    expect(spool).toMatchObject({
      BACKEND: 'Pod',
      DESIRED: '3',
      IMAGE: 'registry.example.org/agent-sandbox:1',
    });
    await patchStatus(['awf/analyze-failures', ...agents()], {
      trigger: 'Pipeline,MergeRequest',
      projectsReady: '1/2',
      activeRuns: 3,
    });
    const [awf] = table(await kubectl(['get', 'awf', ...agents()]));
    expect(Object.keys(awf ?? {})).toEqual(['NAME', 'TRIGGER', 'PROJECTS', 'POOL', 'READY', 'ACTIVE', 'AGE']);
    expect(awf).toMatchObject({
      TRIGGER: 'Pipeline,MergeRequest',
      PROJECTS: '1/2',
      POOL: 'analysis',
      ACTIVE: '3',
    });
    const [wide] = table(await kubectl(['get', 'awf', ...agents(), '-o', 'wide']));
    expect(wide).toMatchObject({ MODEL: 'gemini-3.1-pro-preview', SUSPENDED: 'false' });
    const [asess] = table(await kubectl(['get', 'asess', ...agents(), '-o', 'wide']));
    expect(asess).toMatchObject({ WORKFLOW: 'analyze-failures', PROJECT: 'group/app', IID: '42' });
  });

  it('selects by fields', async () => {
    const base = await sample('agentrun', namespaces);
    const variants: readonly Manifest[] = [
      changed(base, set('metadata.name', 'other-workflow'), set('spec.workflowRef.name', 'code-review')),
      changed(base, set('metadata.name', 'other-project'), set('spec.mergeRequest.project', 'group/lib')),
      changed(base, set('metadata.name', 'other-number'), set('spec.mergeRequest.iid', 43)),
      changed(base, set('metadata.name', 'other-kind'), set('spec.trigger', { kind: 'MergeRequest' })),
      changed(base, set('metadata.name', 'other-phase')),
    ];
    for (const object of variants) await kubectl(['create', '-f', '-'], object);
    await patchStatus(['arun/other-phase', ...agents()], { phase: 'Running', session: 'session-2' });
    for (const [selector, name] of [
      ['spec.workflowRef.name=code-review', 'other-workflow'],
      ['spec.mergeRequest.project=group/lib', 'other-project'],
      ['spec.mergeRequest.iid=43', 'other-number'],
      ['spec.trigger.kind=MergeRequest', 'other-kind'],
      ['status.phase=Running', 'other-phase'],
      ['status.session=session-2', 'other-phase'],
    ] as const) {
      const names = await kubectl(['get', 'arun', ...agents(), '--field-selector', selector, '-o', 'name']);
      expect(names.trim(), selector).toBe(`agentrun.${GROUP}/${name}`);
    }
  });
});

describe('kubectl scale', () => {
  it('sets the replicas of a pool, and refuses what is none', async () => {
    await kubectl(['scale', 'spool/analysis', ...pool(), '--replicas=5']);
    expect(await kubectl(['get', 'spool/analysis', ...pool(), '-o', 'jsonpath={.spec.replicas}'])).toBe('5');
    const { ok, stderr } = await tryKubectl(['scale', 'spool/analysis', ...pool(), '--replicas=501']);
    expect(stderr).toMatch(/spec\.replicas: Invalid.*less than or equal to 500/);
    expect(ok).toBe(false);
  });

  it('shows autoscalers how many there are and which', async () => {
    await patchStatus(['spool/analysis', ...pool()], {
      replicas: 4,
      selector: 'hummingbird.dev/pool=analysis',
    });
    const path = `/apis/${GROUP}/${VERSION}/namespaces/${namespaces.sandboxes}/sandboxpools/analysis/scale`;
    expect(JSON.parse(await kubectl(['get', '--raw', path]))).toMatchObject({
      kind: 'Scale',
      status: { replicas: 4, selector: 'hummingbird.dev/pool=analysis' },
    });
  });
});

interface Published {
  readonly path: string;
  readonly description: string;
}

/** Every named field below a published schema, except those inside metadata, which are Kubernetes' own. */
function fields(schema: Record<string, unknown>, path: string): readonly Published[] {
  const properties = Object.entries(asRecord(schema['properties']));
  const inner = [schema['items'], schema['additionalProperties']].filter((node) => node !== undefined);
  return [
    ...properties.flatMap(([name, field]) => {
      const node = asRecord(field);
      const here = { path: `${path}.${name}`, description: String(node['description'] ?? '') };
      return name === 'metadata' ? [here] : [here, ...fields(node, here.path)];
    }),
    ...inner.flatMap((node) => fields(asRecord(node), `${path}[]`)),
  ];
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
