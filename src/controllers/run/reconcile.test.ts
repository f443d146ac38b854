import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import { aStep } from '../../../test/builders/step.ts';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import { KubeError } from '../../kube/errors.ts';
import type { KubeClient, Patch } from '../../kube/port.ts';
import type { RunDeps } from './deps.ts';
import { createRunReconciler } from './reconcile.ts';

const ref = { namespace: 'agents', name: 'run-1' };
const held = {
  phase: 'Pending',
  holder: { replica: 'operator-0/1', epoch: 1 },
  startTime: '2026-03-01T11:55:00Z',
} as const;
const ready = { kind: 'Ok', value: undefined } as const;

/** A run in an API server that takes every status, and a workflow with a timeout of ten minutes. */
function world(run: AgentRun, deps: Partial<RunDeps>) {
  let stored = run;
  const writes: AgentRun['status'][] = [];
  const kube = {
    get: async () => stored,
    patch: async (_: unknown, __: unknown, patch: Patch) => {
      if (patch.type === 'json') stored = { ...stored, metadata: { ...stored.metadata, finalizers: [] } };
      else {
        // All that is applied is a status.
        const { status } = patch.body as { status: NonNullable<AgentRun['status']> };
        writes.push(status);
        stored = { ...stored, status };
      }
      return stored;
    },
  } as unknown as KubeClient; // the two methods that a reconcile of these tests uses
  const step = aStep(
    run,
    {
      kube,
      metrics: {
        step: () => undefined,
        approval: () => undefined,
        delivered: () => undefined,
        ended: () => undefined,
      },
      isHolderAlive: async () => true,
      workflow: async () => aWorkflow({ publish: { kind: 'None', internal: true, progress: false } }),
      sourceAccess: async () => ready,
      mergeRequests: {
        get: async () => ({ kind: 'Refused', status: 404, message: 'not asked for' }),
        accessLevel: async () => ({ kind: 'Refused', status: 404, message: 'not asked for' }),
        pushAuthor: async () => ({ kind: 'Refused', status: 404, message: 'not asked for' }),
      },
      prompt: async () => ({ kind: 'Ok', value: 'Look.' }),
      ...deps,
    },
    undefined,
  );
  const wakes: (number | undefined)[] = [];
  const { deps: all, local } = step.context;
  const reconcile = createRunReconciler(all, local, (_, afterMs) => void wakes.push(afterMs));
  return { ...step, writes, wakes, local, reconcile };
}
const model = async () => ({ kind: 'Invalid', reason: 'NotFound', message: 'no key' }) as const;
const alive = () => new AbortController().signal;

describe('the run reconciler', () => {
  it('says what a step failed on, and comes back for the deadline however long the backoff is', async () => {
    const { reconcile, events, wakes } = world(aRun(held), {
      model: () => Promise.reject(new Error('the Secret cannot be read')),
    });
    await expect(reconcile(ref, alive())).rejects.toThrow('cannot be read');
    expect(events).toEqual(['StepFailed']);
    expect(wakes).toEqual([5 * 60_000]);
  });

  it('ends at the deadline with what failed all the time', async () => {
    const { reconcile, writes, clock } = world(aRun(held), {
      model: () => Promise.reject(new Error('the Secret cannot be read')),
    });
    await expect(reconcile(ref, alive())).rejects.toThrow();
    await clock.advance(5 * 60_000);
    await reconcile(ref, alive());
    expect(writes[0]?.outcome).toMatchObject({
      reason: 'Timeout',
      message: expect.stringContaining('Admit: the Secret cannot be read'),
    });
  });

  it('makes no fuss of a conflict: somebody was faster, the next look reads again', async () => {
    const conflict = new KubeError({ where: 'run-1', message: 'changed', reason: 'Conflict' });
    const { reconcile, events } = world(aRun(held), { model: () => Promise.reject(conflict) });
    await expect(reconcile(ref, alive())).rejects.toBe(conflict);
    expect(events).toEqual([]);
  });

  it('begins no step any more in a replica that stops', async () => {
    const { reconcile, writes } = world(aRun(held), { model });
    await expect(reconcile(ref, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
    expect(writes).toEqual([]);
  });

  it('goes from the refusal to the terminal phase in one go, and counts the run once', async () => {
    const ended: string[] = [];
    const { reconcile, writes } = world(aRun(held), {
      model,
      metrics: {
        step: () => undefined,
        approval: () => undefined,
        delivered: () => undefined,
        ended: (_, reason) => void ended.push(reason),
      },
    });
    await reconcile(ref, alive());
    expect(writes.map((status) => status?.phase)).toEqual(['Finishing', 'Failed']);
    expect(ended).toEqual(['InvalidSpec']);
  });

  it('leaves no condition open when it gives up', async () => {
    const run = aRun({
      ...held,
      phase: 'Finishing',
      note: { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' },
      outcome: { reason: 'Succeeded', time: '2026-03-01T11:00:00Z' },
      conditions: [aCondition('NotePosted', 'Unknown', 'Retrying')],
    });
    const { reconcile, writes } = world(run, {});
    await reconcile(ref, alive());
    const last = writes[0];
    expect(last?.phase).toBe('Succeeded');
    expect(last?.conditions?.find(({ type }) => type === 'NotePosted')).toMatchObject({
      status: 'False',
      reason: 'GaveUp',
    });
  });
});
