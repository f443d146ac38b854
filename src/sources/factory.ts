import type { HttpClient } from '../http/client.ts';
import type { ToolToken } from '../settings/tokens.ts';
import { gitlabTools } from './gitlab/tools.ts';
import type { SourceFactory } from './port.ts';

export interface SourceFactoryOptions {
  readonly http: HttpClient;
  readonly gitlabUrl: string;
  /**
   * The tool-tier token of a workflow for a project: the project's own, else that of the workflow's data source.
   * Undefined when the workflow declares no GitLab source: then there are no GitLab tools.
   */
  readonly gitlabToken: (
    workflow: { readonly namespace: string; readonly name: string },
    project: string,
  ) => Promise<ToolToken | undefined>;
  /** Projects that the workflow lets its runs read besides their own merge request. Left out: none. */
  readonly allowedProjects?: (workflow: {
    readonly namespace: string;
    readonly name: string;
  }) => Promise<readonly string[]>;
}

export function createSourceFactory(options: SourceFactoryOptions): SourceFactory {
  return {
    async toolsFor({ workflow, scope }) {
      const token = await options.gitlabToken(workflow, scope.project);
      if (token === undefined) return [];
      const allowedProjects = (await options.allowedProjects?.(workflow)) ?? scope.allowedProjects ?? [];
      const source = { http: options.http, baseUrl: options.gitlabUrl, token };
      return gitlabTools(source, { ...scope, allowedProjects });
    },
  };
}
