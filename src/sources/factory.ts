import type { Tool } from '../agent/tools/port.ts';
import type { HttpClient } from '../http/client.ts';
import type { ToolToken } from '../settings/tokens.ts';
import { counted } from './counted.ts';
import { gitlabTools } from './gitlab/tools.ts';
import { type KonfluxAccess, konfluxTools } from './konflux/tools.ts';
import type { SourceMetrics } from './metrics.ts';
import type { SourceFactory, SourceScope, WorkflowRef } from './port.ts';
import { type TestingFarmSource, testingFarmTools } from './testing-farm/tools.ts';

/**
 * The data sources that a workflow declares for one project, with their credentials. One that is absent does not exist
 * for the model: it has no tool, and no word of it stands in the system prompt.
 */
export interface DeclaredSources {
  readonly gitlab?: {
    readonly token: ToolToken;
    /** Projects that runs may read besides their own merge request. */
    readonly allowedProjects: readonly string[];
  };
  readonly konflux?: KonfluxAccess;
  readonly testingFarm?: Omit<TestingFarmSource, 'http'>;
}

export interface SourceMeans {
  readonly http: HttpClient;
  readonly gitlabUrl: string;
  /** Word that opens the markers in agents' notes, where it is not the usual one. */
  readonly markerPrefix?: string;
}

export interface SourceFactoryOptions extends SourceMeans {
  /** Rejects when a credential cannot be had. */
  declared(workflow: WorkflowRef, project: string): Promise<DeclaredSources>;
  readonly metrics?: SourceMetrics;
}

export function createSourceFactory(options: SourceFactoryOptions): SourceFactory {
  return {
    async toolsFor({ workflow, scope }) {
      const { declared, metrics } = options;
      const tools = toolsOf(await declared(workflow, scope.project), options, scope);
      return metrics === undefined ? tools : tools.map((tool) => counted(tool, metrics));
    },
  };
}

/** The tools of one run, source by source. */
export function toolsOf(
  { gitlab, konflux, testingFarm }: DeclaredSources,
  { http, gitlabUrl, markerPrefix }: SourceMeans,
  scope: SourceScope,
): readonly Tool[] {
  return [
    ...(gitlab === undefined
      ? []
      : gitlabTools(
          {
            ...{ http, baseUrl: gitlabUrl, token: gitlab.token },
            ...(markerPrefix === undefined ? {} : { markerPrefix }),
          },
          { ...scope, allowedProjects: gitlab.allowedProjects },
        )),
    ...(konflux === undefined ? [] : konfluxTools(konflux, scope)),
    ...(testingFarm === undefined ? [] : testingFarmTools({ http, ...testingFarm })),
  ];
}
