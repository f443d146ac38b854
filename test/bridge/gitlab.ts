import type { BridgeGitLab } from '../../src/bridge/port.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { createNotesFactory } from '../../src/notes/gitlab-notes.ts';
import { createMergeRequestsFactory } from '../../src/notes/merge-requests.ts';
import { createThreads } from '../../src/notes/threads.ts';
import { actionToken, orchestratorToken } from '../../src/settings/tokens.ts';
import { ACCESS, type FakeGitLab, startGitLab } from '../fakes/gitlab/index.ts';
import type { FakeMergeRequest, FakeUser } from '../fakes/gitlab/state.ts';

export const MARKER = { keys: [{ id: 'k1', secret: 'ab'.repeat(32) }] } as const;

/** A GitLab, and the bridge's own adapters for it. */
export interface BridgeGitLabWorld {
  readonly gitlab: FakeGitLab;
  readonly parts: BridgeGitLab;
  /** Who is behind the events of `aPipelineEvent`: a Developer in each project. */
  readonly alice: FakeUser;
  /** Of the operator itself. */
  readonly operator: FakeUser;
  /** A project with the merge request of `aPipelineEvent`, which the workflow's bot serves. */
  aProject(path: string): { readonly mergeRequest: FakeMergeRequest; readonly bot: FakeUser };
  /** Another merge request by Alice. */
  aMergeRequest(path: string, iid: number): FakeMergeRequest;
  close(): Promise<void>;
}

export async function bridgeGitLab(): Promise<BridgeGitLabWorld> {
  const gitlab = await startGitLab();
  const { state } = gitlab;
  const alice = state.user({ id: 9, username: 'alice' });
  const operator = state.user({ username: 'operator', bot: true });
  // Repeats at once: what a test waits for is the bridge's own patience.
  const http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
  const own = orchestratorToken(state.token({ user: operator }));
  const options = { http, baseUrl: gitlab.url };
  const bots = new Map<string, string>();
  return {
    gitlab,
    alice,
    operator,
    parts: {
      mergeRequests: createMergeRequestsFactory(options).mergeRequestsWith(own),
      threads: createThreads({ ...options, marker: MARKER }, own),
      async notes(_, project) {
        const token = bots.get(project);
        if (token === undefined) return { kind: 'Invalid', message: `no bot serves ${project}` };
        const notes = createNotesFactory({ ...options, marker: MARKER });
        return { kind: 'Ok', value: notes.notesFor(project, actionToken(token)) };
      },
    },
    aProject(path) {
      const project = state.project({ path });
      state.member(project, alice, ACCESS.developer);
      state.member(project, operator, ACCESS.developer);
      const bot = state.projectBot(project);
      bots.set(path, bot.token);
      const mergeRequest = state.mergeRequest(project, { author: alice, iid: 7, sha: 'a'.repeat(40) });
      return { mergeRequest, bot: bot.user };
    },
    aMergeRequest(path, iid) {
      const project = state.projects.find((one) => one.path === path);
      if (project === undefined) throw new Error(`there is no project ${path}`);
      return state.mergeRequest(project, { author: alice, iid });
    },
    async close() {
      await http.close();
      await gitlab.stop();
    },
  };
}
