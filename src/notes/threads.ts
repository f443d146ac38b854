import { z } from 'zod';
import type { HttpClient } from '../http/client.ts';
import { createGitLabApi, type GitLabApi, projectPath } from '../http/gitlab.ts';
import type { OrchestratorToken } from '../settings/tokens.ts';
import { escapeDashes, type MarkerOptions, parseMarker } from './marker.ts';
import { outcome } from './outcome.ts';
import type { MergeRequestRef, NoteOutcome, ThreadNote, Threads } from './port.ts';
import { GITLAB_NOTE_LIMIT } from './render.ts';
import { sanitise } from './sanitise.ts';

export interface GitLabThreadsOptions {
  readonly http: HttpClient;
  readonly baseUrl: string;
  readonly marker: MarkerOptions;
}

/** Discussions on GitLab, for the operator's own token. */
export function createThreads(options: GitLabThreadsOptions, token: OrchestratorToken): Threads {
  return new GitLabThreads(options, token);
}

const User = z.object({ id: z.number().int() });
const NoteShape = z.object({ id: z.number().int(), body: z.string(), system: z.boolean(), author: User });
const Discussion = z.object({ notes: z.array(NoteShape) });
type Note = z.infer<typeof NoteShape>;

class GitLabThreads implements Threads {
  readonly #api: GitLabApi;
  readonly #marker: MarkerOptions;
  #self: NoteOutcome<number> | undefined;

  constructor({ http, baseUrl, marker }: GitLabThreadsOptions, token: OrchestratorToken) {
    this.#api = createGitLabApi({ http, baseUrl, token });
    this.#marker = marker;
  }

  async ping(signal?: AbortSignal): Promise<void> {
    await outcome(this.#api.resources(signal).users.showCurrentUser());
  }

  /** Only an answer is remembered: a refusal or a failure is asked again. */
  async botUserId(signal?: AbortSignal): Promise<NoteOutcome<number>> {
    if (this.#self !== undefined) return this.#self;
    const asked = await outcome(this.#api.resources(signal).users.showCurrentUser());
    if (asked.kind !== 'Ok') return asked;
    this.#self = { kind: 'Ok', value: User.parse(asked.value).id };
    return this.#self;
  }

  read(
    mergeRequest: MergeRequestRef,
    discussionId: string,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<readonly ThreadNote[]>> {
    return outcome(
      this.#notes(mergeRequest, discussionId, signal).then((notes) =>
        notes.map(({ id, author, system, body }) => ({
          noteId: id,
          authorId: author.id,
          system,
          marker: system ? undefined : parseMarker(body, this.#marker),
        })),
      ),
    );
  }

  async answer(
    mergeRequest: MergeRequestRef,
    to: { readonly discussionId: string; readonly noteId: number },
    text: string,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<'Posted' | 'Found'>> {
    const self = await this.botUserId(signal);
    return self.kind === 'Ok' ? outcome(this.#answer(mergeRequest, to, text, self.value, signal)) : self;
  }

  async #answer(
    mergeRequest: MergeRequestRef,
    { discussionId, noteId }: { readonly discussionId: string; readonly noteId: number },
    text: string,
    self: number,
    signal: AbortSignal | undefined,
  ): Promise<'Posted' | 'Found'> {
    const notes = await this.#notes(mergeRequest, discussionId, signal);
    const mark = answerMark(noteId);
    if (notes.some(({ author, body }) => author.id === self && body.trimEnd().endsWith(mark))) return 'Found';
    const { project, iid } = mergeRequest;
    const body = `${sanitise(text).slice(0, GITLAB_NOTE_LIMIT - mark.length - 2)}\n\n${mark}`;
    await this.#api.resources(signal).discussions.addNote(project, iid, discussionId, body);
    return 'Posted';
  }

  async notice(
    mergeRequest: MergeRequestRef,
    notice: { readonly key: string; readonly text: string; readonly internal: boolean },
    signal?: AbortSignal,
  ): Promise<NoteOutcome<'Posted' | 'Found'>> {
    const self = await this.botUserId(signal);
    return self.kind === 'Ok' ? outcome(this.#notice(mergeRequest, notice, self.value, signal)) : self;
  }

  async #notice(
    { project, iid }: MergeRequestRef,
    { key, text, internal }: { readonly key: string; readonly text: string; readonly internal: boolean },
    self: number,
    signal: AbortSignal | undefined,
  ): Promise<'Posted' | 'Found'> {
    const mark = `<!-- hummingbird-notice: ${escapeDashes(JSON.stringify(key))} -->`;
    const path = `projects/${projectPath(project)}/merge_requests/${iid}/notes`;
    // What was posted is mostly among the newest.
    for await (const rows of this.#api.pages(path, { sort: 'desc' }, signal))
      for (const row of rows) {
        const { author, body } = NoteShape.parse(row);
        if (author.id === self && body.trimEnd().endsWith(mark)) return 'Found';
      }
    const options = internal ? { internal: true } : {};
    await this.#api.resources(signal).notes.create(project, iid, `${sanitise(text)}\n\n${mark}`, options);
    return 'Posted';
  }

  async #notes(
    { project, iid }: MergeRequestRef,
    discussionId: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly Note[]> {
    const found = await this.#api.resources(signal).discussions.show(project, iid, discussionId);
    return Discussion.parse(found).notes;
  }
}

/** Not signed: it is looked for in notes of this token's own user, who says it of nobody else's note. */
const answerMark = (noteId: number): string => `<!-- hummingbird-answer: {"note":${noteId}} -->`;
