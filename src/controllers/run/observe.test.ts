import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import { aStep } from '../../../test/builders/step.ts';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { forget } from './local.ts';
import { observe } from './observe.ts';

const ref = { namespace: 'agents', name: 'run-1' };
const held = { phase: 'Running', holder: { replica: 'operator-0/1', epoch: 1 } } as const;

function world() {
  let workflow: AgentWorkflow | undefined = aWorkflow();
  const { context } = aStep(aRun(), {
    workflow: async () => workflow,
    isHolderAlive: async (holder) => holder === 'operator-0/1',
  });
  const { deps, local } = context;
  return {
    local,
    observe: (run: AgentRun) => observe(deps, local, ref, run),
    deleteWorkflow: () => {
      workflow = undefined;
    },
  };
}

describe('observe', () => {
  it('keeps the workflow of a run that is under way when somebody deletes it: its note needs the token', async () => {
    const { observe: look, deleteWorkflow, local } = world();
    await look(aRun(held));
    deleteWorkflow();
    const observed = await look(aRun(held));
    expect(observed?.workflow?.spec.projects[0]?.path).toBe('group/app');
    forget(local, aRun().metadata.uid ?? '');
    expect((await look(aRun(held)))?.workflow).toBeUndefined();
  });

  it('keeps nothing of runs that others hold, or that have ended', async () => {
    const { observe: look, local } = world();
    await look(aRun({ ...held, holder: { replica: 'operator-1/1', epoch: 1 } }));
    await look(aRun({ ...held, phase: 'Succeeded' }));
    expect(local.workflows.size).toBe(0);
  });

  it('says whether the holder lives, and that nobody is no holder', async () => {
    const { observe: look } = world();
    expect((await look(aRun(held)))?.state.holderAlive).toBe(true);
    const dead = aRun({ ...held, holder: { replica: 'operator-0/0', epoch: 1 } });
    expect((await look(dead))?.state.holderAlive).toBe(false);
    expect((await look(aRun()))?.state.holderAlive).toBe(false);
  });

  it('looks for the runs before a run that goes on with a session, until the session is open or it has ended', async () => {
    const spec = { spec: { sessionRef: { name: 's-1' } } };
    const before = aRun({ phase: 'Running' }, { ...spec, metadata: { name: 'run-0', uid: 'u-0' } });
    const { context } = aStep(aRun(), {
      workflow: async () => aWorkflow(),
      isHolderAlive: async () => true,
      sessionRuns: (namespace, session) => (namespace === 'agents' && session === 's-1' ? [before] : []),
    });
    const { deps, local } = context;
    const look = async (run: AgentRun) => (await observe(deps, local, ref, run))?.state.session;
    const waiting = aRun({ ...held, phase: 'Claiming' }, spec);
    expect(await look(waiting)).toEqual({ kind: 'Behind', run: 'run-0', untold: 'run-0' });
    expect(await look(aRun({ ...held, phase: 'Succeeded' }, spec))).toEqual({ kind: 'ToOpen' });
    expect(await look(aRun(held, spec))).toEqual({ kind: 'ToOpen' });
    local.openSessions.add(waiting.metadata.uid ?? '');
    expect(await look(waiting)).toEqual({ kind: 'Open' });
    expect(await look(aRun(held))).toEqual({ kind: 'New' });
  });
});
