import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { createMergeRequestsFactory } from '../notes/merge-requests.ts';
import type { MergeRequests, Notes, NotesFactory, Threads } from '../notes/port.ts';
import { createThreads } from '../notes/threads.ts';
import { type OperatorSettings, SettingsError } from '../settings/operator.ts';
import type { References, Resolved } from '../settings/references.ts';
import { orchestratorToken, type ToolToken } from '../settings/tokens.ts';
import { createSourceFactory } from '../sources/factory.ts';
import type { SourceFactory } from '../sources/port.ts';

export interface GitLabParts {
  readonly notes: NotesFactory;
  readonly mergeRequests: MergeRequests;
  readonly threads: Threads;
  readonly sources: SourceFactory;
}

/** The three tiers of GitLab access, each with its own token; they meet nowhere else. */
export function joinGitLab(parts: {
  readonly settings: OperatorSettings;
  readonly http: HttpClient;
  readonly references: References;
  workflow(ref: { readonly namespace: string; readonly name: string }): Promise<AgentWorkflow | undefined>;
}): GitLabParts {
  const { settings, http, references } = parts;
  const baseUrl = settings.gitlabUrl;
  const [first, ...rest] = settings.secrets.markerKeys.map(({ id, key }) => ({ id, secret: key }));
  if (first === undefined) throw new SettingsError('HUMMINGBIRD_MARKER_KEYS holds no key');
  const marker = { keys: [first, ...rest], prefix: settings.markerPrefix } as const;
  const own = orchestratorToken(settings.secrets.orchestratorToken);
  return {
    notes: createNotesFactory({ http, baseUrl, marker }),
    mergeRequests: createMergeRequestsFactory({ http, baseUrl }).mergeRequestsWith(own),
    threads: createThreads({ http, baseUrl, marker }, own),
    sources: createSourceFactory({
      http,
      gitlabUrl: baseUrl,
      async gitlabToken(ref, project) {
        const workflow = await parts.workflow(ref);
        const token = workflow && (await readToken(references, workflow, project));
        if (token === undefined) return undefined;
        if (token.kind === 'Invalid') throw new Error(token.message);
        return token.value;
      },
      async allowedProjects(ref) {
        return (await parts.workflow(ref))?.spec.dataSources.gitlab?.allowedProjects ?? [];
      },
    }),
  };
}

/** Undefined when the workflow declares no GitLab source: its runs have no GitLab tools. */
export async function readToken(
  references: References,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<ToolToken> | undefined> {
  const declared =
    workflow.spec.dataSources.gitlab !== undefined ||
    workflow.spec.projects.some(({ path, tokens }) => path === project && tokens?.gitlab !== undefined);
  return declared ? references.gitlabToolToken(workflow, project) : undefined;
}

/** Notes of a workflow's bot on one project. */
export async function workflowNotes(
  references: References,
  notes: NotesFactory,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<Notes>> {
  const token = await references.actionToken(workflow, project);
  return token.kind === 'Ok' ? { kind: 'Ok', value: notes.notesFor(project, token.value) } : token;
}
