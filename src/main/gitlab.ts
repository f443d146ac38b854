import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { createMergeRequestsFactory } from '../notes/merge-requests.ts';
import type { MergeRequests, NotesFactory } from '../notes/port.ts';
import { type OperatorSettings, SettingsError } from '../settings/operator.ts';
import type { References, Resolved } from '../settings/references.ts';
import { orchestratorToken, type ToolToken } from '../settings/tokens.ts';
import { createSourceFactory } from '../sources/factory.ts';
import type { SourceFactory } from '../sources/port.ts';

export interface GitLabParts {
  readonly notes: NotesFactory;
  readonly mergeRequests: MergeRequests;
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
  return {
    notes: createNotesFactory({
      http,
      baseUrl,
      marker: { keys: [first, ...rest], prefix: settings.markerPrefix },
    }),
    mergeRequests: createMergeRequestsFactory({ http, baseUrl }).mergeRequestsWith(
      orchestratorToken(settings.secrets.orchestratorToken),
    ),
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
