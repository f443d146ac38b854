import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { aScene } from './scene.ts';
import { snsEnvelope } from './sns.ts';
import { mergeRequestHook, noteHook, pipelineHook } from './webhooks.ts';

let scene: Awaited<ReturnType<typeof aScene>>;
beforeEach(async () => {
  scene = await aScene({ now: () => Date.parse('2026-11-30T08:15:00Z') });
});
afterEach(() => scene.gitlab.stop());

test('a pipeline hook names the branch, the merge request and the failed jobs', () => {
  const pipeline = scene.state.pipeline(scene.project, {
    user: scene.users.ada,
    mergeRequest: scene.mergeRequest,
  });
  const job = scene.state.job(pipeline, { name: 'unit' });
  expect(pipelineHook(scene.gitlab.url, pipeline)).toMatchObject({
    object_kind: 'pipeline',
    object_attributes: {
      status: 'failed',
      source: 'merge_request_event',
      ref: 'feature-1',
      sha: scene.mergeRequest.sha,
      created_at: '2026-11-30 08:15:00 UTC',
    },
    merge_request: { iid: 1, target_project_id: scene.project.id },
    user: { id: scene.users.ada.id },
    project: { path_with_namespace: 'group/app', id: scene.project.id },
    builds: [{ id: job.id, status: 'failed', failure_reason: 'script_failure' }],
  });
});

test('a merge request hook of a push carries the old head and the new one', () => {
  const oldrev = scene.mergeRequest.sha;
  const sha = scene.state.push(scene.mergeRequest);
  const hook = mergeRequestHook(scene.gitlab.url, scene.mergeRequest, { action: 'update', oldrev });
  expect(hook.object_attributes).toMatchObject({
    action: 'update',
    oldrev,
    last_commit: { id: sha },
    draft: false,
  });
});

test('a note hook carries author, discussion and merge request', () => {
  const written = scene.state.note(scene.mergeRequest, {
    author: scene.users.ada,
    body: '/hummingbird help',
    internal: true,
  });
  expect(noteHook(scene.gitlab.url, scene.mergeRequest, written)).toMatchObject({
    event_type: 'confidential_note',
    object_attributes: {
      note: '/hummingbird help',
      noteable_type: 'MergeRequest',
      author_id: scene.users.ada.id,
      discussion_id: written.discussion.id,
      action: 'create',
    },
    merge_request: { iid: 1 },
  });
});

test('an envelope is read back, packed or plain', () => {
  const packed = JSON.parse(snsEnvelope({ a: 1 }, { eventType: 'pipeline', encoding: 'gzip+base64' }));
  expect(JSON.parse(gunzipSync(Buffer.from(packed.Message, 'base64')).toString())).toEqual({ a: 1 });
  expect(packed.MessageAttributes).toMatchObject({
    source: { Value: 'gitlab' },
    event_type: { Value: 'pipeline' },
    content_encoding: { Value: 'gzip+base64' },
  });
  const plain = JSON.parse(snsEnvelope({ a: 1 }, { eventType: 'pipeline' }));
  expect(plain.Message).toBe('{"a":1}');
  expect(plain.MessageAttributes.content_encoding).toBeUndefined();
});
