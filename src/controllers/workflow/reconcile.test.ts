import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { ResourceKind } from '../../crds/meta.ts';
import { ManualClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/errors.ts';
import type { ControllerRevision } from '../../kube/kinds.ts';
import type { KubeClient, ObjectRef } from '../../kube/port.ts';
import { conditionOf } from '../conditions.ts';
import { inForce } from './accept.ts';
import type { ReferenceCheck } from './decide.ts';
import { isForRun, keptRevision, newestKept } from './kept.ts';
import { workflowPins } from './pins.ts';
import { createWorkflowReconciler } from './reconcile.ts';

const shown = (revision: ControllerRevision | undefined) =>
  `${revision?.revision}${revision !== undefined && isForRun(revision) ? ' for a run' : ''}`;

/** The API server, as far as one workflow goes. */
function world() {
  const clock = new ManualClock();
  const asked: string[] = [];
  let stored = aWorkflow();
  let active = 0;
  let references: readonly ReferenceCheck[] = [];
  const revisions = new Map<string, ControllerRevision>();
  const inUse = new Set<string>();
  const story: string[] = [];
  const refuse = () => Promise.reject(new Error('not expected here'));
  const kube = {
    ...{ list: refuse, replace: refuse },
    create: async (_: unknown, revision: ControllerRevision) => {
      const name = revision.metadata.name ?? '';
      if (revisions.has(name))
        throw new KubeError({ reason: 'AlreadyExists', message: name, where: 'create' });
      const creationTimestamp = clock.now().toISOString();
      revisions.set(name, { ...revision, metadata: { ...revision.metadata, creationTimestamp } });
      story.push(`keep ${shown(revision)}`);
      return revision;
    },
    delete: async (_: unknown, { name }: ObjectRef) => {
      story.push(`forget ${shown(revisions.get(name))}`);
      return revisions.delete(name);
    },
    get: async (kind: ResourceKind) => (kind.kind === 'AgentWorkflow' ? stored : undefined),
    patch: async (_: unknown, __: unknown, { body }: { body: { status: AgentWorkflow['status'] } }) => {
      stored = { ...stored, ...(body.status && { status: body.status }) };
      story.push(`accept ${body.status?.acceptedGeneration}`);
      return stored;
    },
  } as unknown as KubeClient; // the methods that this reconciler uses
  const reconcile = createWorkflowReconciler({
    kube,
    clock,
    events: { record: () => undefined, flush: async () => undefined },
    references: async () => {
      asked.push('references');
      return references;
    },
    project: async (_, path) => {
      asked.push(path);
      return { path, ready: true, botUserId: 7 };
    },
    activeRuns: () => active,
    revisions: () => [...revisions.values()],
    revisionsInUse: () => inUse,
  });
  return {
    clock,
    asked,
    reconcile: () => reconcile({ namespace: 'agents', name: 'analyze-failures' }),
    status: () => stored.status,
    runs: (count: number) => {
      active = count;
    },
    inUse,
    pins: workflowPins({ kube, revisions: () => [...revisions.values()] }),
    edit: (spec: Partial<AgentWorkflow['spec']> = {}) => {
      const generation = (stored.metadata.generation ?? 0) + 1;
      stored = { ...aWorkflow(spec, { generation }), ...(stored.status && { status: stored.status }) };
    },
    resolve: (ok: boolean) => {
      references = [{ field: 'spec.prompt', ok, ...(ok ? {} : { reason: 'NotFound' }) }];
    },
    story,
    /** As the replicas that start runs see it. */
    used: () => inForce(stored, (workflow) => newestKept(workflow, [...revisions.values()])).spec,
    condition: (type: string) => conditionOf(stored.status?.conditions, type),
  };
}

describe('the workflow reconciler', () => {
  it('counts runs without asking GitLab and the Secrets again', async () => {
    const { asked, reconcile, runs, status } = world();
    await reconcile();
    expect(asked).toEqual(['references', 'group/app']);
    for (const count of [1, 2, 3]) {
      runs(count);
      await reconcile();
      expect(status()?.activeRuns).toBe(count);
    }
    expect(asked).toHaveLength(2);
  });

  it('asks again when its time has come, since Secrets and bots change without an event', async () => {
    const { clock, asked, reconcile } = world();
    const { requeueAfterMs = 0 } = await reconcile();
    await clock.advance(requeueAfterMs);
    await reconcile();
    expect(asked).toHaveLength(4);
  });

  it('asks again at once when the spec has changed', async () => {
    const { asked, reconcile, edit } = world();
    await reconcile();
    edit();
    await reconcile();
    expect(asked).toHaveLength(4);
  });
});

describe('a bad update', () => {
  const BAD = {
    triggers: [
      {
        event: 'Pipeline',
        rules: [{ action: 'Allow', title: ['/(/'] }],
        ignoreUsers: [],
        ignoreBranches: [],
      },
    ],
    projects: [{ path: 'group/other', actionTokenSecretRef: { name: 'other', key: 'token' } }],
  } satisfies Partial<AgentWorkflow['spec']>;

  it('that makes no sense leaves the last accepted spec at work, and says so', async () => {
    const { reconcile, edit, used, status, condition, asked } = world();
    await reconcile();
    edit(BAD);
    // Also before anybody has looked at it.
    expect(used().projects[0]?.path).toBe('group/app');
    await reconcile();
    expect(status()).toMatchObject({ observedGeneration: 2, acceptedGeneration: 1 });
    expect(used().projects[0]?.path).toBe('group/app');
    expect(condition('Accepted')).toMatchObject({ status: 'False', reason: 'Invalid' });
    expect(condition('Accepted')?.message).toMatch(/rules\[0\]\.title.*New runs use generation 1/);
    expect(condition('Ready')).toMatchObject({ status: 'False', reason: 'NotAccepted' });
    // The bots of the projects that are served are known all the same.
    expect(asked.at(-1)).toBe('group/app');
    expect(status()?.projects).toMatchObject([{ path: 'group/app', botUserId: 7 }]);
  });

  it('that names what is not there waits for it, while the last accepted spec works', async () => {
    const { clock, reconcile, edit, resolve, used, status, condition } = world();
    await reconcile();
    edit({ prompt: { configMapKeyRef: { name: 'none', key: 'none' } } });
    resolve(false);
    const { requeueAfterMs = 0 } = await reconcile();
    expect(condition('Accepted')).toMatchObject({ status: 'False', reason: 'UnresolvedRefs' });
    expect(used().prompt).toEqual({ text: 'Look.' });
    resolve(true);
    await clock.advance(requeueAfterMs);
    await reconcile();
    expect(status()?.acceptedGeneration).toBe(2);
    expect(condition('Accepted')?.status).toBe('True');
    expect(used().prompt).toEqual({ configMapKeyRef: { name: 'none', key: 'none' } });
  });

  it('suspends all the same, when it says so', async () => {
    const { reconcile, edit, used } = world();
    await reconcile();
    edit({ ...BAD, suspend: true });
    await reconcile();
    expect(used()).toMatchObject({ suspend: true, projects: [{ path: 'group/app' }] });
  });

  it('does not come from a Secret that goes: what was accepted once stays', async () => {
    const { clock, reconcile, edit, resolve, status, condition } = world();
    await reconcile();
    edit();
    const { requeueAfterMs = 0 } = await reconcile();
    resolve(false);
    await clock.advance(requeueAfterMs);
    await reconcile();
    expect(status()?.acceptedGeneration).toBe(2);
    expect(condition('Accepted')?.status).toBe('True');
    expect(condition('ResolvedRefs')?.status).toBe('False');
  });

  it('of a workflow that never worked counts: there is nothing to go on with', async () => {
    const { reconcile, edit, resolve, used, status } = world();
    resolve(false);
    await reconcile();
    edit({ prompt: { text: 'Second.' } });
    await reconcile();
    expect(status()?.acceptedGeneration).toBe(2);
    expect(used().prompt).toEqual({ text: 'Second.' });
  });

  it('finds a spec that was kept before the status said that it is accepted, and forgotten a while after the next', async () => {
    const { clock, reconcile, edit, story } = world();
    await reconcile();
    edit();
    const { requeueAfterMs = 0 } = await reconcile();
    expect(story).toEqual(['keep 1', 'accept 1', 'keep 2', 'accept 2']);
    await clock.advance(requeueAfterMs);
    await reconcile();
    expect(story.at(-1)).toBe('forget 1');
  });
});

describe('a spec that was kept', () => {
  it('stays as long as a run under way goes on with it', async () => {
    const { clock, reconcile, edit, story, pins, inUse } = world();
    await reconcile();
    const name = await pins.pin(aWorkflow());
    inUse.add(name);
    edit({ prompt: { text: 'Second.' } });
    const { requeueAfterMs = 0 } = await reconcile();
    await clock.advance(requeueAfterMs);
    await reconcile();
    expect(story).not.toContain('forget 1');
    expect((await pins.pinned({ namespace: 'agents', name }))?.prompt).toEqual({ text: 'Look.' });
    inUse.clear();
    await reconcile();
    expect(story.at(-1)).toBe('forget 1');
    expect(await pins.pinned({ namespace: 'agents', name })).toBeUndefined();
  });

  it('is shared by the runs that begin with it', async () => {
    const { reconcile, pins, story } = world();
    await reconcile();
    const names = [await pins.pin(aWorkflow()), await pins.pin(aWorkflow())];
    expect(new Set(names).size).toBe(1);
    expect(story).toEqual(['keep 1', 'accept 1']);
  });

  it('for a run that was there before the leader is not one that was accepted', async () => {
    const { clock, reconcile, edit, resolve, used, pins, story, status } = world();
    await reconcile();
    edit({ prompt: { configMapKeyRef: { name: 'none', key: 'none' } } });
    resolve(false);
    const second = used();
    expect(second.prompt).toEqual({ configMapKeyRef: { name: 'none', key: 'none' } });
    const name = await pins.pin(aWorkflow(second, { generation: 2 }));
    expect(await pins.pin(aWorkflow(second, { generation: 2 }))).toBe(name);
    const { requeueAfterMs = 0 } = await reconcile();
    expect(status()?.acceptedGeneration).toBe(1);
    expect(used().prompt).toEqual({ text: 'Look.' });
    expect(await pins.pinned({ namespace: 'agents', name })).toMatchObject({ prompt: second.prompt });
    resolve(true);
    await clock.advance(requeueAfterMs);
    await reconcile();
    await clock.advance(60_000);
    await reconcile();
    expect(story).toEqual([
      ...['keep 1', 'accept 1', 'keep 2 for a run', 'accept 1', 'keep 2', 'accept 2'],
      ...['forget 1', 'forget 2 for a run'],
    ]);
  });
});

it('what was kept for a workflow of the same name that is gone does not count', () => {
  const before = keptRevision(aWorkflow({}, { uid: 'before' }));
  expect(newestKept(aWorkflow({}, { uid: 'now' }), [before])).toBeUndefined();
  expect(keptRevision(aWorkflow({}, { uid: 'now' })).metadata.name).not.toBe(before.metadata.name);
});

it('what was kept in a form that is not understood does not count', () => {
  const kept = { ...keptRevision(aWorkflow()), data: { prompt: 3 } };
  expect(newestKept(aWorkflow(), [kept])).toBeUndefined();
});
