import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { startLocalSandbox } from '../../../../test/fakes/local-sandbox.ts';
import type { AgentRun, AgentRunStatus } from '../../../crds/agent-run.ts';
import type {
  ClaimResult,
  LingerRequest,
  LingerResult,
  SandboxProvider,
  SandboxRequest,
} from '../../../sandbox/port.ts';
import { claimSandbox, lingerSandbox } from './sandbox.ts';

const pool = { name: 'analysis', namespace: 'sandboxes' };
const spec = { sandbox: { poolRef: pool } };
const uid = aRun().metadata.uid ?? '';

interface Asked {
  readonly claims: SandboxRequest[];
  readonly lingers: LingerRequest[];
  readonly released: string[];
}

/** A provider that answers what the test says, and remembers what it was asked. */
function providing(
  answers: { readonly claim?: ClaimResult; readonly linger?: LingerResult; readonly released?: boolean } = {},
) {
  const asked: Asked = { claims: [], lingers: [], released: [] };
  const sandboxes: SandboxProvider = {
    async claim(request) {
      asked.claims.push(request);
      return answers.claim ?? { kind: 'Waiting', message: 'none is free; place 2 in line' };
    },
    find: async () => undefined,
    async linger(request) {
      asked.lingers.push(request);
      return answers.linger ?? { kind: 'NotKept', message: 'linger.max 0' };
    },
    async release(runUid, namespace) {
      asked.released.push(`${namespace}/${runUid}`);
      return answers.released ?? true;
    },
  };
  return { sandboxes, asked };
}

const step = (run: AgentRun, sandboxes: SandboxProvider) => aStep(run, { sandboxes }, aWorkflow());
const sandboxReady = (status: AgentRunStatus | undefined) =>
  status?.conditions?.find(({ type }) => type === 'SandboxReady');

describe('a run that finds no sandbox free', () => {
  it('says SandboxUnavailable and its place in line, and asks again soon', async () => {
    const { sandboxes } = providing();
    const { context, events } = step(aRun({ phase: 'Claiming' }, { spec }), sandboxes);
    const { status, afterMs } = await claimSandbox(context);
    expect(sandboxReady(status)).toMatchObject({
      status: 'False',
      reason: 'SandboxUnavailable',
      message: 'none is free; place 2 in line',
    });
    expect(status?.outcome).toBeUndefined();
    expect(afterMs).toBeGreaterThan(0);
    expect(events).toEqual(['WaitingForSandbox']);
  });

  it('writes nothing while nothing changes, and knows since when it waits after a restart', async () => {
    const { sandboxes, asked } = providing();
    const since = '2026-03-01T11:00:00.000Z';
    const waiting = {
      ...aCondition('SandboxReady', 'False', 'SandboxUnavailable'),
      message: 'none is free; place 2 in line',
      lastTransitionTime: since,
    };
    const { context, events } = step(aRun({ phase: 'Claiming', conditions: [waiting] }, { spec }), sandboxes);
    expect((await claimSandbox(context)).status).toBeUndefined();
    expect(events).toEqual([]);
    expect(asked.claims[0]?.waitingSince?.toISOString()).toBe(since);
  });

  it('ends with SandboxUnavailable and the reason when waiting cannot help', async () => {
    const { sandboxes } = providing({ claim: { kind: 'Unavailable', message: 'none within 30s' } });
    const { context } = step(aRun({ phase: 'Claiming' }, { spec }), sandboxes);
    const { status } = await claimSandbox(context);
    expect(status?.outcome).toMatchObject({ reason: 'SandboxUnavailable', message: 'none within 30s' });
    expect(sandboxReady(status)).toMatchObject({ status: 'False', reason: 'SandboxUnavailable' });
  });
});

describe('a run that goes on with a session', () => {
  it('asks for the sandbox that lingers with the save it goes on from, and says that it has it', async () => {
    const sandbox = await startLocalSandbox();
    const { sandboxes, asked } = providing({ claim: { kind: 'Claimed', sandbox, reclaimed: true } });
    const run = aRun({ phase: 'Claiming' }, { spec: { ...spec, sessionRef: { name: 's-1' } } });
    const { context, events } = step(run, sandboxes);
    context.local.savedBy.set(uid, 'run-0');
    const { status } = await claimSandbox(context);
    expect(asked.claims).toMatchObject([{ sessionId: 's-1', savedBy: 'run-0' }]);
    expect(sandboxReady(status)).toMatchObject({ status: 'True', reason: 'Reclaimed' });
    expect(events).toEqual(['SandboxReclaimed']);
    expect(context.local.reclaimed).toContain(uid);
    await sandbox.cleanup();
  });
});

describe('a run that ended well', () => {
  const claimed = aRun(
    {
      phase: 'Finishing',
      sandbox: { kind: 'PodPool', name: 'p-1', namespace: 'sandboxes' },
      conditions: [aCondition('SandboxReady', 'True', 'Claimed')],
    },
    { spec: { ...spec, sessionRef: { name: 's-1' } } },
  );
  const until = new Date('2026-03-01T12:05:00Z');
  const lingers: LingerResult = {
    kind: 'Lingers',
    ref: { kind: 'PodPool', name: 'p-1', namespace: 'sandboxes' },
    until,
  };

  it('leaves its sandbox to the session, and says until when', async () => {
    const { sandboxes, asked } = providing({ linger: lingers });
    const { context, events } = step(claimed, sandboxes);
    const { status } = await lingerSandbox(context);
    expect(asked.lingers).toEqual([
      { runUid: uid, runNamespace: 'agents', sessionId: 's-1', namespace: 'sandboxes' },
    ]);
    expect(sandboxReady(status)).toMatchObject({
      status: 'False',
      reason: 'Lingering',
      message: expect.stringContaining('p-1 is kept for a reply until 2026-03-01T12:05:00.000Z'),
    });
    expect(events).toEqual(['SandboxLingers']);
  });

  it('still releases whatever else it owns, and comes back until nothing is left', async () => {
    const { sandboxes, asked } = providing({ linger: lingers, released: false });
    const { status, afterMs } = await lingerSandbox(step(claimed, sandboxes).context);
    expect(asked.released).toEqual([`sandboxes/${uid}`]);
    expect(status).toBeUndefined();
    expect(afterMs).toBeGreaterThan(0);
  });

  it('gives its sandbox back when the pool keeps none', async () => {
    const { sandboxes } = providing();
    const { context, events } = step(claimed, sandboxes);
    expect(sandboxReady((await lingerSandbox(context)).status)?.reason).toBe('Released');
    expect(events).toEqual(['SandboxReleased']);
  });
});
