import { z } from 'zod';
import type { HttpClient } from '../http/client.ts';
import { createGitLabApi, type GitLabApi, projectPath } from '../http/gitlab.ts';
import type { ActionToken } from '../settings/tokens.ts';
import { type MarkerOptions, markerThatCounts, parseMarker } from './marker.ts';
import { flatOutcome, outcome } from './outcome.ts';
import type { AgentThreads, MergeRequestRef, NoteOutcome, NoteRef, Notes, NotesFactory } from './port.ts';
import { renderNote } from './render.ts';

export interface GitLabNotesOptions {
  readonly http: HttpClient;
  readonly baseUrl: string;
  readonly marker: MarkerOptions;
  /** Besides GitLab's own: hosts to which a link may carry data. Lower case. */
  readonly trustedHosts?: readonly string[];
  /** Under every note; Markdown. */
  readonly footer?: string;
}

/** Notes on GitLab, one `Notes` per project and bot. */
export function createNotesFactory(options: GitLabNotesOptions): NotesFactory {
  return { notesFor: (project, token) => new GitLabNotes(options, project, token) };
}

const User = z.object({ id: z.number().int() });
const Note = z.object({
  id: z.number().int(),
  body: z.string(),
  system: z.boolean(),
  author: User,
  internal: z.boolean().optional(),
  resolvable: z.boolean().optional(),
  resolved: z.boolean().optional(),
});
const Discussion = z.object({ id: z.string(), notes: z.array(Note) });
type Note = z.infer<typeof Note>;

type NewNote = Parameters<Notes['create']>[1];

class GitLabNotes implements Notes {
  readonly #options: GitLabNotesOptions;
  readonly #project: string;
  readonly #api: GitLabApi;
  #bot: Promise<NoteOutcome<number>> | undefined;

  constructor(options: GitLabNotesOptions, project: string, token: ActionToken) {
    this.#options = options;
    this.#project = project;
    this.#api = createGitLabApi({ http: options.http, baseUrl: options.baseUrl, token });
  }

  botUserId(): Promise<NoteOutcome<number>> {
    this.#bot ??= this.#askBotUserId();
    return this.#bot;
  }

  /** Only an answer is remembered: a refusal or a failure is asked again. */
  async #askBotUserId(): Promise<NoteOutcome<number>> {
    const asked = await outcome(this.#api.resources().users.showCurrentUser()).catch((error: unknown) => {
      this.#bot = undefined;
      throw error;
    });
    if (asked.kind === 'Ok') return { kind: 'Ok', value: User.parse(asked.value).id };
    this.#bot = undefined;
    return asked;
  }

  async findByRun(mergeRequest: MergeRequestRef, runUid: string): Promise<NoteOutcome<NoteRef | undefined>> {
    const bot = await this.botUserId();
    if (bot.kind !== 'Ok') return bot;
    return outcome(
      this.#findNote(mergeRequest, ({ author, system, body }) => {
        if (system || author.id !== bot.value) return false;
        const parsed = parseMarker(body, this.#options.marker);
        return parsed?.kind === 'Signed' && parsed.marker.run === runUid;
      }),
    );
  }

  create(mergeRequest: MergeRequestRef, note: NewNote): Promise<NoteOutcome<NoteRef>> {
    return flatOutcome(this.#create(mergeRequest, note));
  }

  /** An internal answer to a public discussion stands beside it: a reply would be as public as its discussion. */
  async #create(mergeRequest: MergeRequestRef, note: NewNote): Promise<NoteOutcome<NoteRef>> {
    const { discussionId, internal } = note;
    if (discussionId !== undefined && !(internal && (await this.#isPublic(mergeRequest, discussionId)))) {
      return { kind: 'Ok', value: await this.#reply(mergeRequest, note, discussionId) };
    }
    if (internal) return this.#createInternal(mergeRequest, note);
    return { kind: 'Ok', value: await this.#createDiscussion(mergeRequest, note) };
  }

  update(
    mergeRequest: MergeRequestRef,
    ref: NoteRef,
    note: Pick<NewNote, 'text' | 'marker'>,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<NoteRef>> {
    const { discussions } = this.#api.resources(signal);
    const body = this.#body(note);
    return outcome(
      discussions
        .editNote(this.#at(mergeRequest), mergeRequest.iid, ref.discussionId, ref.noteId, { body })
        .then(() => ref),
    );
  }

  async threadsOf(mergeRequest: MergeRequestRef, workflow: string): Promise<NoteOutcome<AgentThreads>> {
    const bot = await this.botUserId();
    return bot.kind === 'Ok' ? outcome(this.#threadsOf(mergeRequest, workflow, bot.value)) : bot;
  }

  async #threadsOf(mergeRequest: MergeRequestRef, workflow: string, bot: number): Promise<AgentThreads> {
    const commits = new Map<string, Set<string>>();
    let count = 0;
    for await (const { notes } of this.#discussions(mergeRequest)) {
      let counts = false;
      for (const { author, system, body } of notes) {
        const parsed = system || author.id !== bot ? undefined : parseMarker(body, this.#options.marker);
        const marker = markerThatCounts(parsed);
        if (marker?.wf !== workflow) continue;
        const { sha, run = '' } = marker;
        if (sha === undefined) continue;
        counts = true;
        commits.set(sha, (commits.get(sha) ?? new Set()).add(run));
      }
      if (counts) count += 1;
    }
    return { count, commits };
  }

  async resolveThreads(
    mergeRequest: MergeRequestRef,
    which: { readonly workflow: string; readonly exceptSha?: string },
  ): Promise<NoteOutcome<number>> {
    const bot = await this.botUserId();
    return bot.kind === 'Ok' ? outcome(this.#resolveThreads(mergeRequest, which, bot.value)) : bot;
  }

  async #resolveThreads(
    mergeRequest: MergeRequestRef,
    { workflow, exceptSha }: { readonly workflow: string; readonly exceptSha?: string },
    bot: number,
  ): Promise<number> {
    const { discussions } = this.#api.resources();
    let resolved = 0;
    for await (const { id, notes } of this.#discussions(mergeRequest)) {
      const [first] = notes;
      if (first === undefined || first.system || first.author.id !== bot) continue;
      const marker = markerThatCounts(parseMarker(first.body, this.#options.marker));
      if (marker?.wf !== workflow) continue;
      if (exceptSha !== undefined && marker.sha === exceptSha) continue;
      if (!notes.some((note) => note.resolvable === true && note.resolved === false)) continue;
      await discussions.resolve(this.#at(mergeRequest), mergeRequest.iid, id, true);
      resolved += 1;
    }
    return resolved;
  }

  async #isPublic(mergeRequest: MergeRequestRef, discussionId: string): Promise<boolean> {
    const { discussions } = this.#api.resources();
    const { notes } = Discussion.parse(
      await discussions.show(this.#at(mergeRequest), mergeRequest.iid, discussionId),
    );
    return notes[0]?.internal !== true;
  }

  async #createDiscussion(mergeRequest: MergeRequestRef, note: NewNote): Promise<NoteRef> {
    const { discussions } = this.#api.resources();
    const made = await discussions.create(this.#at(mergeRequest), mergeRequest.iid, this.#body(note));
    const { id, notes } = Discussion.parse(made);
    const first = notes[0];
    if (first === undefined)
      throw new Error(`GitLab made discussion ${id} without a note; look at the merge request`);
    return this.#ref(mergeRequest, id, first.id);
  }

  async #reply(mergeRequest: MergeRequestRef, note: NewNote, discussionId: string): Promise<NoteRef> {
    const { discussions } = this.#api.resources();
    const made = await discussions.addNote(
      this.#at(mergeRequest),
      mergeRequest.iid,
      discussionId,
      this.#body(note),
    );
    return this.#ref(mergeRequest, discussionId, Note.parse(made).id);
  }

  /**
   * Discussions cannot be made internal, single notes can; the first reply turns one into a discussion. A bot
   * below Reporter gets a public note instead of an error: that one is taken away again.
   */
  async #createInternal(mergeRequest: MergeRequestRef, note: NewNote): Promise<NoteOutcome<NoteRef>> {
    const { notes } = this.#api.resources();
    const at = this.#at(mergeRequest);
    const made = Note.parse(await notes.create(at, mergeRequest.iid, this.#body(note), { internal: true }));
    if (made.internal !== true) {
      await notes.remove(at, mergeRequest.iid, made.id);
      const message = `GitLab would not make an internal note in ${this.#project}: give the bot the Reporter role, or set publish.internal to false`;
      return { kind: 'Refused', status: 403, message };
    }
    const found = await this.#findNote(mergeRequest, ({ id }) => id === made.id);
    if (found !== undefined) return { kind: 'Ok', value: found };
    return {
      kind: 'Refused',
      status: 404,
      message: `note ${made.id} in ${this.#project} was deleted at once`,
    };
  }

  async #findNote(
    mergeRequest: MergeRequestRef,
    wanted: (note: Note) => boolean,
  ): Promise<NoteRef | undefined> {
    for await (const { id, notes } of this.#discussions(mergeRequest)) {
      const note = notes.find(wanted);
      if (note !== undefined) return this.#ref(mergeRequest, id, note.id);
    }
    return undefined;
  }

  async *#discussions(mergeRequest: MergeRequestRef): AsyncGenerator<z.infer<typeof Discussion>> {
    const path = `projects/${projectPath(this.#at(mergeRequest))}/merge_requests/${mergeRequest.iid}/discussions`;
    for await (const rows of this.#api.pages(path)) for (const row of rows) yield Discussion.parse(row);
  }

  /** The token is for one project; asking it for another one is a mistake of ours. */
  #at({ project }: MergeRequestRef): string {
    if (project !== this.#project)
      throw new Error(`These notes are for ${this.#project}, not for ${project}`);
    return project;
  }

  #body({ text, marker }: Pick<NewNote, 'text' | 'marker'>): string {
    const { footer, trustedHosts = [], marker: signing } = this.#options;
    return renderNote(
      { text, marker, ...(footer === undefined ? {} : { footer }) },
      { ...signing, trustedHosts: [new URL(this.#api.baseUrl).hostname, ...trustedHosts] },
    );
  }

  #ref({ project, iid }: MergeRequestRef, discussionId: string, noteId: number): NoteRef {
    return {
      discussionId,
      noteId,
      url: `${this.#api.baseUrl}/${project}/-/merge_requests/${iid}#note_${noteId}`,
    };
  }
}
