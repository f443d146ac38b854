import { type Call, forbidden, levelIn, notFound } from './http.ts';
import {
  ACCESS,
  type FakeDiscussion,
  type FakeMergeRequest,
  type FakeNote,
  type FakeProject,
} from './state.ts';

/** Looks up what a path names, and answers as GitLab does when the caller may not see it. */
export function project(call: Call): FakeProject {
  const id = call.path['id'] ?? '';
  const found = call.state.projects.find(
    (one) => String(one.id) === id || one.path.toLowerCase() === id.toLowerCase(),
  );
  if (found === undefined) throw notFound('Project');
  const level = levelIn(found, call);
  // A project bot exists in its own project only, whatever others show to everybody.
  const visible = level > ACCESS.none || (found.visibility !== 'private' && call.token.kind === 'personal');
  if (!visible) throw notFound('Project');
  return found;
}

/** Guests do not see the code of private projects, and so none of what is derived from it. */
export function projectWithCode(call: Call): FakeProject {
  const found = project(call);
  if (found.visibility === 'private' && levelIn(found, call) < ACCESS.reporter) throw forbidden();
  return found;
}

export function mergeRequest(call: Call): FakeMergeRequest {
  const found = project(call);
  const mergeRequest = found.mergeRequests.get(Number(call.path['iid']));
  const hidden = found.visibility === 'private' && levelIn(found, call) < ACCESS.reporter;
  if (mergeRequest === undefined || hidden) throw notFound('Merge Request');
  return mergeRequest;
}

export const readable = (call: Call, mergeRequest: FakeMergeRequest, note: FakeNote): boolean =>
  !note.internal || levelIn(mergeRequest.project, call) >= ACCESS.reporter;

export function discussion(call: Call, mergeRequest: FakeMergeRequest, what = 'Discussion'): FakeDiscussion {
  const found = mergeRequest.discussions.find(({ id }) => id === call.path['discussion_id']);
  if (found === undefined || !found.notes.some((note) => readable(call, mergeRequest, note)))
    throw notFound(what);
  return found;
}

export function note(
  call: Call,
  mergeRequest: FakeMergeRequest,
): { discussion: FakeDiscussion; note: FakeNote } {
  for (const discussion of mergeRequest.discussions) {
    const note = discussion.notes.find(({ id }) => id === Number(call.path['note_id']));
    if (note !== undefined && readable(call, mergeRequest, note)) return { discussion, note };
  }
  throw notFound('Note');
}
