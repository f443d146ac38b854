import { afterEach, beforeEach, expect, it } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { aScene } from '../../../../test/fakes/gitlab/scene.ts';
import type { AgentRunStatus } from '../../../crds/agent-run.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import { createNotesFactory } from '../../../notes/gitlab-notes.ts';
import { actionToken } from '../../../settings/tokens.ts';
import { calledTool } from '../local.ts';
import { postPlaceholder } from './note.ts';
import { announceProgress, showProgress } from './progress.ts';

const UID = '11111111-2222-4333-8444-555555555555';

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
});
afterEach(async () => {
  await http.close();
  await scene.gitlab.stop();
});

/** A run in the middle of its loop, whose placeholder stands on the real stand-in. */
async function atWork(changes: AgentRunStatus = {}) {
  const notes = createNotesFactory({
    http,
    baseUrl: scene.gitlab.url,
    marker: { keys: [{ id: 'k1', secret: 'marker secret' }] },
  });
  const token = { kind: 'Ok', value: actionToken(scene.bot.token) } as const;
  const deps = { notes, actionToken: async () => token };
  const of = (status: AgentRunStatus) =>
    aRun(status, { spec: { mergeRequest: { project: 'group/app', iid: 1 } } });
  const posted = await postPlaceholder(aStep(of({}), deps, aWorkflow()).context);
  const status = {
    ...posted.status,
    phase: 'Running',
    iterations: 3,
    toolCalls: 1,
    costUSD: '0.0312',
    checkpoint: { sequence: 5, key: 'k' },
    ...changes,
  } as const;
  return aStep(of(status), deps, aWorkflow());
}

const body = () => scene.mergeRequest.discussions[0]?.notes[0]?.body ?? '';
const edits = () => scene.gitlab.requests.filter(({ method }) => method === 'PUT').length;

it('an announcement is written to the status before the note is edited', async () => {
  const { context } = await atWork();
  const { status, written } = announceProgress(context);
  expect(status?.noteProgressTime).toBe('2026-03-01T12:00:00.000Z');
  expect(context.local.progress.get(UID)).toBeUndefined();
  written?.();
  expect(context.local.progress.get(UID)).toEqual({ announcedMs: 0 });
  expect(edits()).toBe(0);
});

it('the edit tells calls, cost and tools, and the note stays the one of this run', async () => {
  const { context } = await atWork();
  for (const name of ['a', 'sandbox_exec', 'b', 'a', 'c']) calledTool(context.local, UID, name);
  announceProgress(context).written?.();
  const before = body();
  await showProgress(context);
  expect(body()).toContain('Running the analyze-failures workflow.');
  expect(body()).toContain('At 12:00 UTC: 3 model calls, $0.0312, 1 tool call, lately `b`, `a`, `c`.');
  const marker = /<!-- hummingbird-session.*-->/;
  expect(marker.exec(body())?.[0]).toBe(marker.exec(before)?.[0]);
  expect(context.local.progress.get(UID)).toEqual({ told: 5 });
});

it('a cost that is not known is not told', async () => {
  const { context } = await atWork();
  const { costUSD: _, ...status } = context.run.status ?? {};
  const unknown = { ...context, run: { ...context.run, status } };
  announceProgress(unknown).written?.();
  await showProgress(unknown);
  expect(body()).toContain('3 model calls, 1 tool call.');
});

it('nothing is edited when the process stood still after the announcement: the final text may stand', async () => {
  const { context, clock } = await atWork();
  announceProgress(context).written?.();
  await clock.advance(2_000);
  await showProgress(context);
  expect(edits()).toBe(0);
  expect(context.local.progress.get(UID)).toEqual({});
});

it('a GitLab that is down costs the run nothing, and the edit is tried again with the next announcement', async () => {
  const { context } = await atWork();
  announceProgress(context).written?.();
  scene.gitlab.faults.add({ path: /discussions/, status: 503, times: Number.POSITIVE_INFINITY });
  expect(await showProgress(context)).toEqual({});
  expect(context.local.progress.get(UID)).toEqual({});
});

it('a note that vanished is not made anew, and not edited again', async () => {
  const { context, events } = await atWork();
  scene.mergeRequest.discussions.length = 0;
  announceProgress(context).written?.();
  await showProgress(context);
  expect(events.at(-1)).toBe('ProgressRefused');
  expect(context.local.progress.get(UID)).toEqual({ refused: true });
  expect(scene.mergeRequest.discussions).toEqual([]);
});
