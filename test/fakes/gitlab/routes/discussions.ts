import { discussionEntity, noteEntity } from '../entities.ts';
import * as find from '../find.ts';
import {
  badRequest,
  type Call,
  created,
  forbidden,
  levelIn,
  list,
  ok,
  Refusal,
  type Reply,
  type Route,
} from '../http.ts';
import { applyCommands, extractCommands } from '../quick-actions.ts';
import { ACCESS, type FakeDiscussion, type FakeMergeRequest, type FakeNote } from '../state.ts';
import { paging } from './merge-requests.ts';

const MAX_BODY = 1_000_000;
const base = 'projects/:id/merge_requests/:iid';
const body = { type: 'string', required: true } as const;

export const discussionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: `${base}/discussions`,
    query: paging,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const rows = mergeRequest.discussions.map((discussion) => shown(call, mergeRequest, discussion));
      return list(rows.filter(({ notes }) => notes.length > 0));
    },
  },
  {
    method: 'POST',
    path: `${base}/discussions`,
    body: { body, created_at: 'string', position: 'object', commit_id: 'string' },
    handle: (call) => {
      const mergeRequest = find.mergeRequest(call);
      const { text } = accept(call, mergeRequest);
      if (text === '') throw blank();
      const { discussion } = call.state.note(mergeRequest, { author: call.token.user, body: text });
      return created(shown(call, mergeRequest, discussion));
    },
  },
  {
    method: 'GET',
    path: `${base}/discussions/:discussion_id`,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      return ok(shown(call, mergeRequest, find.discussion(call, mergeRequest)));
    },
  },
  {
    method: 'PUT',
    path: `${base}/discussions/:discussion_id`,
    query: { resolved: 'boolean' },
    body: { resolved: { type: 'boolean', required: true } },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const discussion = find.discussion(call, mergeRequest);
      const first = discussion.notes[0];
      if (discussion.individualNote) throw badRequest('Discussion can not be resolved');
      if (!mayResolve(call, mergeRequest, first)) throw forbidden();
      for (const note of discussion.notes) resolve(call, note);
      return ok(shown(call, mergeRequest, discussion));
    },
  },
  {
    method: 'GET',
    path: `${base}/discussions/:discussion_id/notes`,
    query: paging,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      return list(shown(call, mergeRequest, find.discussion(call, mergeRequest, 'Notes')).notes);
    },
  },
  {
    method: 'POST',
    path: `${base}/discussions/:discussion_id/notes`,
    body: { body, created_at: 'string' },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const discussion = find.discussion(call, mergeRequest);
      if (discussion.notes[0]?.system) throw badRequest('Discussion can not be replied to.');
      const { text, changes } = accept(call, mergeRequest);
      if (text === '') throw blank();
      const { note } = call.state.note(mergeRequest, { author: call.token.user, body: text, discussion });
      return created(noteEntity(call.base, mergeRequest, discussion, note, changes));
    },
  },
  {
    method: 'PUT',
    path: `${base}/discussions/:discussion_id/notes/:note_id`,
    body: { body: 'string', resolved: 'boolean' },
    handle(call) {
      const given = ['body', 'resolved'].filter((name) => call.body[name] !== undefined);
      if (given.length !== 1) {
        const what =
          given.length === 0
            ? 'are missing, exactly one parameter must be provided'
            : 'are mutually exclusive';
        throw new Refusal({ status: 400, json: { error: `body, resolved ${what}` } });
      }
      const mergeRequest = find.mergeRequest(call);
      find.discussion(call, mergeRequest);
      if (call.body['resolved'] === undefined) return update(call, mergeRequest);
      const { discussion, note } = find.note(call, mergeRequest);
      if (!mayResolve(call, mergeRequest, note)) throw forbidden();
      if (discussion.individualNote || note.system) throw badRequest('Note is not resolvable');
      resolve(call, note);
      return ok(noteEntity(call.base, mergeRequest, discussion, note));
    },
  },
  {
    method: 'GET',
    path: `${base}/notes`,
    query: { ...paging, order_by: 'string', sort: 'string', activity_filter: 'string' },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const rows = mergeRequest.discussions
        .flatMap((discussion) => discussion.notes.map((note) => ({ discussion, note })))
        .filter(({ note }) => find.readable(call, mergeRequest, note))
        .sort((a, b) => a.note.id - b.note.id);
      if (call.query['sort'] !== 'asc') rows.reverse();
      return list(rows.map(({ discussion, note }) => noteEntity(call.base, mergeRequest, discussion, note)));
    },
  },
  {
    method: 'POST',
    path: `${base}/notes`,
    body: {
      body,
      created_at: 'string',
      internal: 'boolean',
      confidential: 'boolean',
      merge_request_diff_head_sha: 'string',
    },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const { text, changes, commands } = accept(call, mergeRequest);
      if (text === '' && commands > 0) {
        const applied = Object.keys(changes);
        if (applied.length === 0) throw badRequest('Failed to apply commands.');
        return {
          status: 202,
          json: { commands_changes: changes, summary: [`Applied ${applied.join(', ')}.`] },
        };
      }
      if (text === '') throw blank();
      // GitLab does not refuse the wish of someone who may not: the note becomes public without a word.
      const wished = call.body['internal'] === true || call.body['confidential'] === true;
      const internal = wished && levelIn(mergeRequest.project, call) >= ACCESS.reporter;
      const author = call.token.user;
      const { discussion, note } = call.state.note(mergeRequest, {
        author,
        body: text,
        internal,
        individual: true,
      });
      return created(noteEntity(call.base, mergeRequest, discussion, note, changes));
    },
  },
  {
    method: 'GET',
    path: `${base}/notes/:note_id`,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const { discussion, note } = find.note(call, mergeRequest);
      return ok(noteEntity(call.base, mergeRequest, discussion, note));
    },
  },
  {
    method: 'PUT',
    path: `${base}/notes/:note_id`,
    body: { body, confidential: 'boolean' },
    handle: (call) => update(call, find.mergeRequest(call)),
  },
  {
    method: 'DELETE',
    path: `${base}/notes/:note_id`,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const found = find.note(call, mergeRequest);
      if (!mayEdit(call, mergeRequest, found.note)) throw forbidden();
      remove(mergeRequest, found);
      return { status: 204 };
    },
  },
];

function shown(call: Call, mergeRequest: FakeMergeRequest, discussion: FakeDiscussion) {
  const notes = discussion.notes.filter((note) => find.readable(call, mergeRequest, note));
  return discussionEntity(call.base, mergeRequest, discussion, notes);
}

/** Checks a text and carries out its commands: they take effect whatever becomes of the note. */
function accept(call: Call, mergeRequest: FakeMergeRequest) {
  const given = String(call.body['body']);
  if ([...given].length > MAX_BODY)
    throw badRequest('Note {:note=>["is too long (maximum is 1000000 characters)"]}');
  if (given.trim() === '') throw blank();
  const { text, commands } = extractCommands(given);
  const changes = applyCommands(call.state, mergeRequest, call.token.user, commands);
  return { text, changes, commands: commands.length };
}

const blank = () => badRequest('Note {:note=>["can\'t be blank"]}');

function update(call: Call, mergeRequest: FakeMergeRequest): Reply {
  const found = find.note(call, mergeRequest);
  const { discussion, note } = found;
  if (note.system || !mayEdit(call, mergeRequest, note)) throw forbidden();
  const { text, changes } = accept(call, mergeRequest);
  if (text === '') {
    // An edit that leaves commands only deletes the note.
    remove(mergeRequest, found);
    return { status: 202, json: { commands_changes: changes, summary: [] } };
  }
  note.body = text;
  note.updatedAt = call.state.time();
  mergeRequest.updatedAt = note.updatedAt;
  return ok(noteEntity(call.base, mergeRequest, discussion, note, changes));
}

function remove(
  mergeRequest: FakeMergeRequest,
  { discussion, note }: { discussion: FakeDiscussion; note: FakeNote },
): void {
  discussion.notes.splice(discussion.notes.indexOf(note), 1);
  if (discussion.notes.length === 0)
    mergeRequest.discussions.splice(mergeRequest.discussions.indexOf(discussion), 1);
}

const mayEdit = (call: Call, mergeRequest: FakeMergeRequest, note: FakeNote): boolean =>
  note.author.id === call.token.user.id || levelIn(mergeRequest.project, call) >= ACCESS.maintainer;

function mayResolve(call: Call, mergeRequest: FakeMergeRequest, note: FakeNote | undefined): boolean {
  const { id } = call.token.user;
  const level = levelIn(mergeRequest.project, call);
  return level >= ACCESS.developer || mergeRequest.author.id === id || note?.author.id === id;
}

function resolve(call: Call, note: FakeNote): void {
  const wish = call.body['resolved'] ?? call.query['resolved'];
  note.resolved = wish === true || wish === 'true';
  note.resolvedBy = note.resolved ? call.token.user : undefined;
  note.updatedAt = call.state.time();
}
