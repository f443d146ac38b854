import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AgentRunSpec } from '../../src/crds/agent-run.ts';
import { TERMINAL_PHASES } from '../../src/crds/reasons.ts';
import { cleanUp, kubectl, type Namespaces, type Outcome, prepare, tryKubectl } from './kubectl.ts';
import { changed, type Manifest, sample, set } from './objects.ts';

let namespaces: Namespaces;
beforeAll(async () => {
  namespaces = await prepare();
});
afterAll(() => cleanUp(namespaces));

let count = 0;
/** Creates an object under a name of its own; `resource/name` of it, for kubectl. */
async function create(object: Manifest): Promise<readonly string[]> {
  count += 1;
  const named = changed(object, set('metadata.name', `case-${count}`));
  await kubectl(['create', '-f', '-'], named);
  return ['-n', String(named.metadata.namespace), `${named.kind.toLowerCase()}/case-${count}`];
}

const patch = (target: readonly string[], body: unknown, ...more: readonly string[]): Promise<Outcome> =>
  tryKubectl(['patch', ...target, '--type=merge', '-p', JSON.stringify(body), ...more]);

const patchStatus = (target: readonly string[], status: unknown): Promise<Outcome> =>
  patch(target, { status }, '--subresource=status');

describe('the spec of an AgentRun', () => {
  const sha = 'a'.repeat(40);
  const everything = {
    'spec.mergeRequest.sha': sha,
    'spec.trigger': { kind: 'Reply', user: 'alice', userId: 7, eventId: '1', discussionId: 'd1', noteId: 9 },
    'spec.sessionRef': { name: 'session-1' },
    'spec.model': { name: 'model-1' },
    'spec.limits': { maxIterations: 5, contextTokens: 5000, timeout: '5m', budgetUSD: '1' },
    'spec.sandbox': { none: true },
    'spec.publish': { kind: 'None' },
  };
  const other: Readonly<Record<string, unknown>> = {
    workflowRef: { name: 'other' },
    mergeRequest: { iid: 43 },
    trigger: { user: 'mallory' },
    message: 'Something else',
    sessionRef: { name: 'session-2' },
    model: { name: 'model-2' },
    limits: { maxIterations: 500 },
    sandbox: { poolRef: { name: 'analysis' }, none: null },
    publish: { kind: 'Note' },
  };
  const fixed = Object.keys(AgentRunSpec.shape).filter(
    (field) => !['cancel', 'ttlSecondsAfterFinished'].includes(field),
  );
  let full: readonly string[];
  let bare: readonly string[];

  beforeAll(async () => {
    const run = await sample('agentrun', namespaces);
    full = await create(changed(run, ...Object.entries(everything).map(([path, value]) => set(path, value))));
    bare = await create(changed(run, { path: 'spec.message', value: undefined }));
  });

  it.each(fixed)('keeps %s', async (field) => {
    expect(other).toHaveProperty(field);
    const { ok, stderr } = await patch(full, { spec: { [field]: other[field] } });
    expect(stderr).toMatch(
      new RegExp(`spec\\.${field}: Forbidden: .*cannot be changed: .*create another one`),
    );
    expect(ok).toBe(false);
  });

  it.each(['message', 'sessionRef', 'model', 'limits', 'sandbox'])(
    'keeps %s when it would be removed',
    async (field) => {
      const { ok, stderr } = await patch(full, { spec: { [field]: null } });
      expect(stderr).toMatch(new RegExp(`spec\\.${field}: Forbidden`));
      expect(ok).toBe(false);
    },
  );

  it.each(['message', 'sessionRef', 'model', 'limits'])('keeps %s absent', async (field) => {
    const { ok, stderr } = await patch(bare, { spec: { [field]: other[field] } });
    expect(stderr).toMatch(new RegExp(`spec\\.${field}: Forbidden`));
    expect(ok).toBe(false);
  });

  it('lets the time to live and labels change', async () => {
    const body = {
      metadata: { labels: { mine: 'yes' } },
      spec: { ttlSecondsAfterFinished: { success: 60 } },
    };
    expect(await patch(bare, body)).toMatchObject({ ok: true });
    expect(await patch(bare, { spec: { ttlSecondsAfterFinished: null } })).toMatchObject({ ok: true });
  });

  it('lets cancel go to true, and not back', async () => {
    expect(await patch(bare, { spec: { cancel: true } })).toMatchObject({ ok: true });
    for (const value of [false, null]) {
      const { ok, stderr } = await patch(bare, { spec: { cancel: value } });
      expect(stderr).toMatch(/spec\.cancel: Forbidden: spec\.cancel cannot go back to false/);
      expect(ok).toBe(false);
    }
  });

  it('can be applied again unchanged', async () => {
    const run = changed(await sample('agentrun', namespaces), set('metadata.name', 'again'));
    await kubectl(['apply', '-f', '-'], run);
    expect(await kubectl(['apply', '-f', '-'], run)).toContain('unchanged');
  });
});

describe('the status of an AgentRun', () => {
  let run: readonly string[];
  beforeEach(async () => {
    run = await create(await sample('agentrun', namespaces));
  });

  it.each(TERMINAL_PHASES)('does not leave %s', async (phase) => {
    expect(await patchStatus(run, { phase: 'Running' })).toMatchObject({ ok: true });
    expect(await patchStatus(run, { phase })).toMatchObject({ ok: true });
    for (const next of ['Running', ...TERMINAL_PHASES.filter((other) => other !== phase)]) {
      const { ok, stderr } = await patchStatus(run, { phase: next });
      expect(stderr).toMatch(/status\.phase: Forbidden: status\.phase cannot leave a final phase/);
      expect(ok).toBe(false);
    }
    expect((await patchStatus(run, { phase: null })).stderr).toMatch(/status\.phase: Forbidden/);
    expect((await patchStatus(run, null)).stderr).toMatch(/status: Forbidden: status cannot be removed/);
  });

  it('still takes what is added after the end', async () => {
    await patchStatus(run, { phase: 'Succeeded' });
    expect(await patchStatus(run, { phase: 'Succeeded', costUSD: '0.10' })).toMatchObject({ ok: true });
  });

  it('lets the epoch of its holder grow only, so that a replica that was replaced cannot write', async () => {
    expect(await patchStatus(run, { holder: { replica: 'a', epoch: 2 } })).toMatchObject({ ok: true });
    expect(await patchStatus(run, { holder: { replica: 'b', epoch: 3 } })).toMatchObject({ ok: true });
    const { ok, stderr } = await patchStatus(run, { holder: { replica: 'a', epoch: 2 } });
    expect(stderr).toMatch(/status\.holder\.epoch: Forbidden: .*another replica has taken the run over/);
    expect(ok).toBe(false);
    expect((await patchStatus(run, { holder: null })).stderr).toMatch(/status\.holder: Forbidden/);
  });

  it('is not written through the object, and the spec not through the status', async () => {
    expect(await patch(run, { status: { phase: 'Succeeded' } })).toMatchObject({ ok: true });
    expect(await patch(run, { spec: { cancel: true } }, '--subresource=status')).toMatchObject({ ok: true });
    const object = JSON.parse(await kubectl(['get', ...run, '-o', 'json']));
    expect(object).not.toHaveProperty('status');
    expect(object.spec.cancel).toBe(false);
  });

  it.each([
    ['an unknown phase', { phase: 'Done' }, /status\.phase: Unsupported value/],
    ['a reason with a space', condition({ reason: 'It failed' }), /status\.conditions\[0\]\.reason: Invalid/],
    [
      'a condition without a message',
      condition({ message: undefined }),
      /status\.conditions\[0\]\.message: Required/,
    ],
    [
      'a condition twice',
      { conditions: [...condition().conditions, ...condition().conditions] },
      /status\.conditions\[1\]: Duplicate/,
    ],
    ['a cost below zero', { costUSD: '-0.1' }, /status\.costUSD: Invalid/],
    ['a time that is none', { startTime: 'yesterday' }, /status\.startTime: Invalid/],
  ])('refuses %s', async (_, status, refusal) => {
    const { ok, stderr } = await patchStatus(run, status);
    expect(stderr).toMatch(refusal);
    expect(ok).toBe(false);
  });
});

it('a SandboxPool keeps its backend', async () => {
  const pool = await create(await sample('sandboxpool', namespaces));
  const { ok, stderr } = await patch(pool, { spec: { backend: 'VirtualMachineInstance' } });
  expect(stderr).toMatch(
    /spec\.backend: Forbidden: spec\.backend cannot be changed: create another SandboxPool/,
  );
  expect(ok).toBe(false);
});

it('an AgentSession gets its discussion once, and keeps what it is about', async () => {
  const object = await sample('agentsession', namespaces);
  const session = await create(changed(object, { path: 'spec.discussionId', value: undefined }));
  expect(await patch(session, { spec: { discussionId: 'first' } })).toMatchObject({ ok: true });
  for (const [field, value] of [
    ['discussionId', 'second'],
    ['discussionId', null],
    ['mergeRequest', { iid: 43 }],
    ['workflowRef', { name: 'x' }],
  ] as const) {
    const { ok, stderr } = await patch(session, { spec: { [field]: value } });
    expect(stderr).toMatch(new RegExp(`spec\\.${field}: Forbidden`));
    expect(ok).toBe(false);
  }
});

it('an AgentWorkflow can be changed', async () => {
  const workflow = await create(await sample('agentworkflow', namespaces));
  expect(await patch(workflow, { spec: { suspend: true, limits: { maxIterations: 10 } } })).toMatchObject({
    ok: true,
  });
});

function condition(changes: Readonly<Record<string, unknown>> = {}) {
  const lastTransitionTime = '2026-01-02T03:04:05Z';
  return {
    conditions: [
      { type: 'Succeeded', status: 'True', reason: 'Succeeded', message: '', lastTransitionTime, ...changes },
    ],
  };
}
