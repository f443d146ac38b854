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

  describe('the workflow of a run that was admitted', () => {
    const admitted = { ...held, workflow: { generation: 1, revision: 'w-1' } } as const;
    const changed = aWorkflow({ prompt: { text: 'Changed.' } }, { generation: 2 });
    const prompts = async (kept: Record<string, AgentWorkflow | undefined>, present?: AgentWorkflow) => {
      const { context, events } = aStep(aRun(), {
        workflow: async () => present,
        isHolderAlive: async () => true,
        pins: {
          pin: () => Promise.reject(new Error('not expected here')),
          pinned: async ({ name }) => kept[name]?.spec,
        },
      });
      const { deps, local } = context;
      const look = async (run: AgentRun) =>
        (await observe(deps, local, ref, run))?.workflow?.spec.prompt?.text;
      return { look, events };
    };

    it('is as it was at the admission, whatever became of it, for whoever takes the run over as well', async () => {
      const { look } = await prompts({ 'w-1': aWorkflow() }, changed);
      expect(await look(aRun(held))).toBe('Changed.');
      expect(await look(aRun(admitted))).toBe('Look.');
      const { look: afterDeletion } = await prompts({ 'w-1': aWorkflow() });
      expect(await afterDeletion(aRun(admitted))).toBe('Look.');
    });

    it('is looked up once', async () => {
      const kept: Record<string, AgentWorkflow | undefined> = { 'w-1': aWorkflow() };
      const { look } = await prompts(kept, changed);
      await look(aRun(admitted));
      kept['w-1'] = undefined;
      expect(await look(aRun(admitted))).toBe('Look.');
    });

    it('is as it is now when what was kept is gone, which is said once', async () => {
      const { look, events } = await prompts({}, changed);
      expect([await look(aRun(admitted)), await look(aRun(admitted))]).toEqual(['Changed.', 'Changed.']);
      expect(events).toEqual(['WorkflowNotKept']);
    });

    it('does not count when the run has ended: how long it is kept is for the workflow to say', async () => {
      const { look } = await prompts({ 'w-1': aWorkflow() }, changed);
      expect(await look(aRun({ ...admitted, phase: 'Succeeded' }))).toBe('Changed.');
    });
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
