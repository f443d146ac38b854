import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { ManualClock } from '../../kube/clock.ts';
import type { KubeClient } from '../../kube/port.ts';
import { createWorkflowReconciler } from './reconcile.ts';

/** The API server, as far as one workflow goes. */
function world() {
  const clock = new ManualClock();
  const asked: string[] = [];
  let stored = aWorkflow();
  let active = 0;
  const refuse = () => Promise.reject(new Error('not expected here'));
  const kube = {
    ...{ list: refuse, create: refuse, replace: refuse, delete: refuse },
    get: async () => stored,
    patch: async (_: unknown, __: unknown, { body }: { body: { status: AgentWorkflow['status'] } }) => {
      stored = { ...stored, ...(body.status && { status: body.status }) };
      return stored;
    },
  } as unknown as KubeClient; // the two methods that this reconciler uses
  const reconcile = createWorkflowReconciler({
    kube,
    clock,
    events: { record: () => undefined, flush: async () => undefined },
    references: async () => {
      asked.push('references');
      return [];
    },
    project: async (_, path) => {
      asked.push(path);
      return { path, ready: true, botUserId: 7 };
    },
    activeRuns: () => active,
  });
  return {
    clock,
    asked,
    reconcile: () => reconcile({ namespace: 'agents', name: 'analyze-failures' }),
    status: () => stored.status,
    runs: (count: number) => {
      active = count;
    },
    edit: () => {
      stored = { ...aWorkflow({}, { generation: 2 }), ...(stored.status && { status: stored.status }) };
    },
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
