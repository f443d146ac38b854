import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { aScene } from '../../../../test/fakes/gitlab/scene.ts';
import type { AgentRunSpec, AgentRunStatus } from '../../../crds/agent-run.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import { createNotesFactory } from '../../../notes/gitlab-notes.ts';
import { actionToken } from '../../../settings/tokens.ts';
import { createFolderStore } from '../../../store/folder.ts';
import { type ObjectStore, StoreError } from '../../../store/port.ts';
import { keepResult } from '../result.ts';
import { postPlaceholder, updateNote } from './note.ts';

const UID = '11111111-2222-4333-8444-555555555555';
const NOW = '2026-03-01T12:00:00.000Z';
const noteIntent = { time: NOW };

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let folder: string;
let store: ObjectStore;
beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
  folder = await mkdtemp(join(tmpdir(), 'note-'));
  store = createFolderStore(folder);
});
afterEach(async () => {
  await http.close();
  await scene.gitlab.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A step on the scene's merge request, with the real notes and the real store. */
function step(status: AgentRunStatus, spec: Partial<AgentRunSpec> = {}) {
  const run = aRun(status, { spec: { mergeRequest: { project: 'group/app', iid: 1 }, ...spec } });
  const notes = createNotesFactory({
    http,
    baseUrl: scene.gitlab.url,
    marker: { keys: [{ id: 'k1', secret: 'marker secret' }] },
  });
  const token = { kind: 'Ok', value: actionToken(scene.bot.token) } as const;
  return aStep(run, { notes, store, actionToken: async () => token }, aWorkflow());
}
const requests = (method: string) => scene.gitlab.requests.filter((one) => one.method === method);
const bodies = () => scene.mergeRequest.discussions.flatMap(({ notes }) => notes.map(({ body }) => body));
const conditionOf = (status: AgentRunStatus | undefined) =>
  status?.conditions?.find(({ type }) => type === 'NotePosted');
const down = { path: /notes|discussions/, status: 503, times: Number.POSITIVE_INFINITY };

describe('postPlaceholder', () => {
  it('posts at once on an intent that was written just now', async () => {
    const { context } = step({ noteIntent });
    context.local.freshIntents.set(UID, 0);
    const { status } = await postPlaceholder(context);
    expect(status?.note?.noteId).toBeGreaterThan(0);
    expect(requests('POST')).toHaveLength(1);
    expect(requests('GET')).toEqual([]);
  });

  it('searches first when the process stood still after the intent: another holder may have posted', async () => {
    const first = step({ noteIntent });
    await postPlaceholder(first.context);
    const { context, clock, events } = step({ noteIntent });
    context.local.freshIntents.set(UID, 0);
    await clock.advance(5_000);
    const { status } = await postPlaceholder(context);
    expect(events).toContain('PlaceholderFound');
    expect(status?.note?.noteId).toBeGreaterThan(0);
    expect(requests('POST')).toHaveLength(1);
  });

  it('searches on the second try, whose first answer was lost', async () => {
    const { context } = step({ noteIntent });
    context.local.freshIntents.set(UID, 0);
    scene.gitlab.faults.add({ method: 'POST', path: /notes|discussions/, dropAfterHandling: true });
    await expect(postPlaceholder(context)).rejects.toThrow();
    await postPlaceholder(context);
    expect(bodies()).toHaveLength(1);
  });
});

describe('updateNote', () => {
  const ended = async (reason: 'Succeeded' | 'Timeout' | 'Cancelled'): Promise<AgentRunStatus> => {
    if (reason !== 'Succeeded') return { noteIntent, outcome: { reason, message: 'm', time: NOW } };
    const { result, ...stored } = await keepResult(store, UID, {
      ...{ version: 1, reason, message: 'm', text: 'The answer.', reported: true, transcriptExcerpt: '' },
    });
    return { noteIntent, outcome: { reason: result.reason, message: 'm', time: NOW, ...stored } };
  };
  const withNote = async (status: AgentRunStatus): Promise<AgentRunStatus> => ({
    ...status,
    ...(await postPlaceholder(step({ noteIntent }).context)).status,
    ...status,
  });

  it('puts the answer in the place of the placeholder', async () => {
    const { status } = await updateNote(step(await withNote(await ended('Succeeded'))).context);
    expect(conditionOf(status)).toMatchObject({ status: 'True', reason: 'Posted' });
    expect(bodies()).toEqual([expect.stringContaining('The answer.')]);
  });

  it('invites a reply in the first note of a conversation, and not in the answer to one', async () => {
    const status = await withNote(await ended('Succeeded'));
    await updateNote(step(status).context);
    expect(bodies()).toEqual([expect.stringContaining('Reply to this note')]);
    await updateNote(step(status, { sessionRef: { name: 'a-session' } }).context);
    expect(bodies()).toEqual([expect.not.stringContaining('Reply to this note')]);
  });

  it('records a GitLab that is down once, so that the run goes on, and leaves later tries to the backoff', async () => {
    const world = step(await withNote(await ended('Succeeded')));
    scene.gitlab.faults.add(down);
    const { status, afterMs } = await updateNote(world.context);
    expect(conditionOf(status)).toMatchObject({ status: 'Unknown', reason: 'Retrying' });
    expect(conditionOf(status)?.message).toContain('group/app!1');
    expect(afterMs).toBeUndefined();
    await expect(
      updateNote(world.after({ ...world.context.run, ...(status && { status }) })),
    ).rejects.toThrow();
  });

  it('posts the reason when GitLab was away as long as the run worked', async () => {
    const { status } = await updateNote(step(await ended('Timeout')).context);
    expect(status?.note?.noteId).toBeGreaterThan(0);
    expect(bodies()).toEqual([expect.stringContaining('Reason: Timeout. m')]);
  });

  it('updates, and does not post again, when the placeholder is there and its record was lost', async () => {
    await postPlaceholder(step({ noteIntent }).context);
    await updateNote(step(await ended('Timeout')).context);
    expect(bodies()).toEqual([expect.stringContaining('Reason: Timeout')]);
    expect(requests('POST')).toHaveLength(1);
  });

  it('posts nothing about a run that somebody cancelled before anything was posted', async () => {
    const { status } = await updateNote(step(await ended('Cancelled')).context);
    expect(conditionOf(status)?.status).toBe('False');
    expect(bodies()).toEqual([]);
  });

  it('says what GitLab refuses, when it refuses the search', async () => {
    scene.gitlab.faults.add({ ...down, status: 403 });
    const { status } = await updateNote(step(await ended('Timeout')).context);
    expect(conditionOf(status)).toMatchObject({ status: 'False', reason: 'Refused' });
    expect(conditionOf(status)?.message).toContain('403');
  });

  it('waits for a store that is down, but not for ever', async () => {
    const status = await withNote(await ended('Succeeded'));
    store = { ...store, get: () => Promise.reject(new StoreError('down', { retryable: true })) };
    const world = step(status);
    const first = await updateNote(world.context);
    expect(conditionOf(first.status)).toMatchObject({ reason: 'Retrying' });
    await world.clock.advance(3 * 60_000);
    await updateNote(world.context);
    expect(bodies()).toEqual([expect.stringContaining('cannot be read now')]);
  });
});
