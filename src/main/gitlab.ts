import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { createMergeRequestsFactory } from '../notes/merge-requests.ts';
import type { MergeRequests, NotesFactory } from '../notes/port.ts';
import type { OperatorSettings } from '../settings/operator.ts';
import { SettingsError } from '../settings/operator.ts';
import type { References } from '../settings/references.ts';
import { orchestratorToken } from '../settings/tokens.ts';
import type { SourceFactory } from '../sources/port.ts';

export interface GitLabParts {
  readonly notes: NotesFactory;
  readonly mergeRequests: MergeRequests;
  sourcesOf(
    workflow: (ref: {
      readonly namespace: string;
      readonly name: string;
    }) => Promise<AgentWorkflow | undefined>,
  ): SourceFactory;
}

/** The three tiers of GitLab access, each with its own token; they meet nowhere else. */
export function joinGitLab(parts: {
  readonly settings: OperatorSettings;
  readonly http: HttpClient;
  readonly references: References;
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
    sourcesOf: (_workflow) => ({ toolsFor: async () => [] }),
  };
}
