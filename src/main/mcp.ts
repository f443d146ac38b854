import type { Logger } from 'pino';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import type { References, Resolved } from '../settings/references.ts';
import type { McpMetrics } from '../sources/mcp/metrics.ts';
import type { McpServerConfig } from '../sources/mcp/server-config.ts';
import { createMcpServers } from '../sources/mcp/servers.ts';
import type { ToolServers, WorkflowRef } from '../sources/port.ts';

export interface McpParts {
  readonly references: References;
  readonly http: HttpClient;
  /** Full paths of programs that workflows may have started. */
  readonly programs: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly metrics: McpMetrics;
  readonly log: Logger;
  workflow(ref: WorkflowRef): Promise<AgentWorkflow | undefined>;
}

export function joinMcp(parts: McpParts): ToolServers {
  const { http, programs, metrics, log } = parts;
  return createMcpServers({
    ...{ http, programs, metrics },
    path: parts.env['PATH'] ?? '/usr/bin:/bin',
    onComplaint: (server, line) => log.info({ server, line }, 'an MCP server complains'),
    async serversOf(ref) {
      const workflow = await parts.workflow(ref);
      const servers = workflow && (await declaredServers(parts, workflow));
      if (servers?.kind === 'Invalid') throw new Error(servers.message);
      return servers?.value ?? [];
    },
  });
}

/** The MCP servers that a workflow names, with their tokens; Invalid says the first that cannot be had. */
export async function declaredServers(
  { references, programs }: Pick<McpParts, 'references' | 'programs'>,
  workflow: AgentWorkflow,
): Promise<Resolved<readonly McpServerConfig[]>> {
  const servers = await Promise.all(
    (workflow.spec.dataSources.mcp ?? []).map(async (declared) => {
      const token = await references.mcpToken(workflow, declared.name);
      if (token.kind === 'Invalid') return token;
      const [program, ...args] = declared.command ?? [];
      if (program !== undefined && !programs.includes(program)) return notAllowed(declared.name, program);
      const value: McpServerConfig = {
        name: declared.name,
        reach:
          program === undefined
            ? { kind: 'Http', url: declared.url ?? '' }
            : { kind: 'Program', program, args },
        token: token.value,
        allowedTools: declared.allowedTools,
        requireApproval: declared.requireApproval,
        pinned: new Map(declared.approvals.map(({ tool, definitionSHA256 }) => [tool, definitionSHA256])),
      };
      return { kind: 'Ok', value } as const;
    }),
  );
  const invalid = servers.find((server) => server.kind === 'Invalid');
  if (invalid?.kind === 'Invalid') return invalid;
  return { kind: 'Ok', value: servers.flatMap((server) => (server.kind === 'Ok' ? [server.value] : [])) };
}

const notAllowed = (server: string, program: string) =>
  ({
    kind: 'Invalid',
    reason: 'ProgramNotAllowed',
    message: `spec.dataSources.mcp[${server}].command: the operator does not start ${program}; allow it with --mcp-command ${program}, or name one that is allowed`,
  }) as const;
