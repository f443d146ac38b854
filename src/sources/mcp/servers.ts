import type { ToolServers, WorkflowRef } from '../port.ts';
import type { ConnectionMeans } from './connection.ts';
import type { McpMetrics } from './metrics.ts';
import type { McpServerConfig } from './server-config.ts';
import type { ServerTools } from './server-tools.ts';

export interface McpServersOptions extends ConnectionMeans {
  readonly metrics: McpMetrics;
  /** The servers that a workflow names, with their tokens. Throws when one of these cannot be had. */
  readonly serversOf: (workflow: WorkflowRef) => Promise<readonly McpServerConfig[]>;
}

/** The MCP servers of workflows: a session for each run, all of a run opened side by side. */
export function createMcpServers(options: McpServersOptions): ToolServers {
  return {
    async open({ workflow, ask, signal }) {
      const servers = await options.serversOf(workflow);
      if (servers.length === 0) return { tools: [], problems: [], close: async () => undefined };
      // The SDK is loaded by the first run that needs it: most operators have none.
      const [{ connect }, { openServer }] = await Promise.all([
        import('./connection.ts'),
        import('./server-tools.ts'),
      ]);
      const means = {
        open: (config: McpServerConfig, ending: AbortSignal) => connect(config, options, ending),
        ...{ ask, signal, metrics: options.metrics },
      };
      const outcomes = await Promise.allSettled(servers.map((config) => openServer(config, means)));
      const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      const close = () => closeAll(opened);
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed !== undefined) {
        await close();
        throw failed.reason;
      }
      return {
        tools: opened.flatMap(({ tools }) => tools),
        problems: opened.flatMap(({ problems }) => problems),
        close,
      };
    },
  };
}

async function closeAll(opened: readonly ServerTools[]): Promise<void> {
  await Promise.allSettled(opened.map((one) => one.close()));
}
