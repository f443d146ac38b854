import { describe, expect, it } from 'vitest';
import { parseEvent } from './parse.ts';

const sha = 'a'.repeat(40);
const webhook = (rest: Record<string, unknown> = {}) => ({
  object_kind: 'pipeline',
  object_attributes: {
    id: 31,
    iid: 3,
    ref: 'fix',
    sha,
    source: 'merge_request_event',
    status: 'failed',
    stages: ['test'],
    duration: null,
  },
  merge_request: {
    id: 1,
    iid: 7,
    title: 'Fix it',
    source_branch: 'fix',
    target_branch: 'main',
    source_project_id: 1,
    target_project_id: 1,
    state: 'opened',
  },
  user: { id: 9, name: 'Alice', username: 'alice' },
  project: { id: 1, name: 'App', path_with_namespace: 'group/app' },
  builds: [],
  ...rest,
});
const parse = (payload: unknown) => parseEvent({ source: 'gitlab', eventType: 'pipeline', payload });

describe('a pipeline webhook', () => {
  it('gives what a decision needs', () => {
    expect(parse(webhook())).toEqual({
      ok: true,
      event: {
        kind: 'Pipeline',
        pipelineId: 31,
        status: 'failed',
        source: 'merge_request_event',
        sha,
        project: { id: 1, path: 'group/app' },
        user: { id: 9, name: 'alice' },
        mergeRequest: {
          iid: 7,
          title: 'Fix it',

          targetBranch: 'main',
          targetProjectId: 1,
        },
      },
    });
  });

  it.each([null, undefined])('BR-09: may have no merge request (%s)', (merge_request) => {
    expect(parse(webhook({ merge_request }))).toMatchObject({ ok: true, event: { mergeRequest: undefined } });
  });

  it('may have no user, as after the user was removed', () => {
    expect(parse(webhook({ user: null }))).toMatchObject({ ok: true, event: { user: undefined } });
  });

  it.each([
    ['no project', webhook({ project: undefined }), 'project'],
    ['no id', webhook({ object_attributes: { sha, status: 'failed' } }), 'object_attributes.id'],
    [
      'a sha that is none',
      webhook({ object_attributes: { id: 1, sha: '../..', status: 'failed' } }),
      'object_attributes.sha',
    ],
    ['another kind than its attribute says', webhook({ object_kind: 'note' }), 'object_kind'],
    ['a list', [], 'object'],
    ['null', null, 'object'],
  ])('with %s is refused, naming the field', (_name, payload, field) => {
    expect(parse(payload)).toMatchObject({ ok: false, message: expect.stringContaining(field) });
  });
});

it('an event of another kind is named and not looked into', () => {
  expect(parseEvent({ source: 'gitlab', eventType: 'wiki_page', payload: 5 })).toEqual({
    ok: true,
    event: { kind: 'Other', what: 'gitlab/wiki_page' },
  });
});
