import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { createMergeRequestsFactory } from '../notes/merge-requests.ts';
import type { MergeRequests, Notes, NotesFactory, Threads } from '../notes/port.ts';
import { createThreads } from '../notes/threads.ts';
import { type OperatorSettings, SettingsError } from '../settings/operator.ts';
import type { References, Resolved } from '../settings/references.ts';
import { orchestratorToken } from '../settings/tokens.ts';
import { createSourceFactory } from '../sources/factory.ts';
import type { SourceMetrics } from '../sources/metrics.ts';
import type { SourceFactory, WorkflowRef } from '../sources/port.ts';
import { declaredSources } from './sources.ts';

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
  onSecret(value: string): void;
  readonly sourceMetrics: SourceMetrics;
  workflow(ref: WorkflowRef): Promise<AgentWorkflow | undefined>;
}): GitLabParts {
  const { settings, http } = parts;
  const baseUrl = settings.gitlabUrl;
  const [first, ...rest] = settings.secrets.markerKeys.map(({ id, key }) => ({ id, secret: key }));
  if (first === undefined) throw new SettingsError('HUMMINGBIRD_MARKER_KEYS holds no key');
  const marker = {
    keys: [first, ...rest],
    prefix: settings.markerPrefix,
    acceptUnsigned: settings.acceptUnsignedMarkers,
  } as const;
  const own = orchestratorToken(settings.secrets.orchestratorToken);
  return {
    notes: createNotesFactory({ http, baseUrl, marker }),
    mergeRequests: createMergeRequestsFactory({ http, baseUrl }).mergeRequestsWith(own),
    threads: createThreads({ http, baseUrl, marker }, own),
    sources: createSourceFactory({
      http,
      gitlabUrl: baseUrl,
      metrics: parts.sourceMetrics,
      markerPrefix: settings.markerPrefix,
      async declared(ref, project) {
        const workflow = await parts.workflow(ref);
        const declared = workflow && (await declaredSources(parts, workflow, project));
        if (declared?.kind === 'Invalid') throw new Error(declared.message);
        return declared?.value ?? {};
      },
    }),
  };
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
