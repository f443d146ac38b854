import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mergeRequestHook, noteHook } from '../../../test/fakes/gitlab/index.ts';
import { aScene } from '../../../test/fakes/gitlab/scene.ts';
import { parseEvent } from './parse.ts';

const BASE = 'https://gitlab.example.org';
let scene: Awaited<ReturnType<typeof aScene>>;
beforeAll(async () => {
  scene = await aScene();
});
afterAll(() => scene?.gitlab.stop());

const parse = (eventType: string, payload: unknown) => parseEvent({ source: 'gitlab', eventType, payload });
/** `change` overwrites fields of `object_attributes`. */
const changed = (hook: { readonly object_attributes: object }, change: object) => ({
  ...hook,
  object_attributes: { ...hook.object_attributes, ...change },
});

describe('a merge request webhook', () => {
  const hook = () => mergeRequestHook(BASE, scene.mergeRequest, { action: 'open' });

  it('gives what a decision needs', () => {
    const { project, mergeRequest, users } = scene;
    expect(parse('merge_request', hook())).toEqual({
      ok: true,
      event: {
        kind: 'MergeRequest',
        action: 'open',
        state: 'opened',
        draft: false,
        sha: mergeRequest.sha,
        labels: ['backend'],
        authorId: users.ada.id,
        pushed: false,
        project: { id: project.id, path: 'group/app' },
        user: { id: users.ada.id, name: 'ada' },
        mergeRequest: { iid: 1, title: 'Add a cache', targetBranch: 'main', targetProjectId: project.id },
      },
    });
  });

  it('names labels wherever GitLab puts them', () => {
    const labels = [{ id: 1, title: 'deps' }];
    expect(parse('merge_request', changed(hook(), { labels }))).toMatchObject({
      event: { labels: ['deps'] },
    });
    expect(parse('merge_request', { ...hook(), labels })).toMatchObject({ event: { labels: ['deps'] } });
  });

  it.each<[string, object, boolean]>([
    ['BR-06: draft null and work_in_progress true', { draft: null, work_in_progress: true }, true],
    ['BR-06: draft null and work_in_progress false', { draft: null, work_in_progress: false }, false],
    [
      'BR-06: draft false wins over a stale work_in_progress',
      { draft: false, work_in_progress: true },
      false,
    ],
    ['BR-06: no draft and work_in_progress true', { draft: undefined, work_in_progress: true }, true],
    ['draft true', { draft: true, work_in_progress: false }, true],
    ['neither', { draft: undefined, work_in_progress: undefined }, false],
  ])('%s', (_name, change, draft) => {
    expect(parse('merge_request', changed(hook(), change))).toMatchObject({ ok: true, event: { draft } });
  });

  it.each<[string, object, object]>([
    ['a push', { oldrev: 'b'.repeat(40) }, { pushed: true }],
    ['no push', { oldrev: null }, { pushed: false }],
    ['no commit yet', { last_commit: null }, { sha: undefined }],
    ['no action', { action: undefined }, { action: '' }],
  ])('may tell of %s', (_what, change, event) => {
    expect(parse('merge_request', changed(hook(), change))).toMatchObject({ ok: true, event });
  });

  it('without a merge request number is named as unreadable', () => {
    expect(parse('merge_request', changed(hook(), { iid: 'x' }))).toMatchObject({
      ok: false,
      message: expect.stringContaining('gitlab/merge_request'),
    });
  });
});

describe('a note webhook', () => {
  const hook = (options: { internal?: boolean; individual?: boolean } = {}) => {
    const { state, mergeRequest, users } = scene;
    return noteHook(
      BASE,
      mergeRequest,
      state.note(mergeRequest, { author: users.ada, body: '/hummingbird help', ...options }),
    );
  };

  it('gives what a decision needs', () => {
    const { project, mergeRequest, users } = scene;
    const given = hook({ individual: true });
    expect(parse('note', given)).toEqual({
      ok: true,
      event: {
        kind: 'Note',
        noteId: given.object_attributes.id,
        discussionId: given.object_attributes.discussion_id,
        text: '/hummingbird help',
        action: 'create',
        on: 'MergeRequest',
        system: false,
        inDiscussion: false,
        project: { id: project.id, path: 'group/app' },
        author: { id: users.ada.id, name: 'ada' },
        mergeRequest: { iid: 1, targetProjectId: project.id, sha: mergeRequest.sha },
      },
    });
  });

  it('tells a comment that stands alone from one in a discussion', () => {
    expect(parse('note', hook())).toMatchObject({ event: { inDiscussion: true } });
    expect(parse('note', changed(hook(), { type: 'DiffNote' }))).toMatchObject({
      event: { inDiscussion: true },
    });
  });

  it('of an internal note is one too', () => {
    expect(parse('confidential_note', hook({ internal: true }))).toMatchObject({ event: { kind: 'Note' } });
  });

  it.each(['Commit', 'Issue', 'Snippet'])('BR-10: on a %s has no merge request, and can be read', (on) => {
    const { merge_request: _, ...rest } = changed(hook(), {
      noteable_type: on,
      commit_id: 'c'.repeat(40),
    }) as ReturnType<typeof hook>;
    expect(parse('note', rest)).toMatchObject({ ok: true, event: { on, mergeRequest: undefined } });
  });

  it('of an older GitLab names no action', () => {
    expect(parse('note', changed(hook(), { action: undefined }))).toMatchObject({ event: { action: '' } });
  });
});

it('what nothing here handles is named', () => {
  expect(parse('push', {})).toEqual({ ok: true, event: { kind: 'Other', what: 'gitlab/push' } });
});
