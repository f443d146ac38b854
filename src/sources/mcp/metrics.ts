import { Counter, type Registry } from 'prom-client';

export type CallOutcome = 'ok' | 'error' | 'failed' | 'refused';
export type ProblemReason = 'Unreachable' | 'NotFound' | 'DefinitionChanged' | 'Unusable' | 'NameTaken';

export interface McpMetrics {
  connected(server: string, ok: boolean): void;
  withheld(server: string, reason: ProblemReason): void;
  call(server: string, outcome: CallOutcome): void;
}

export function mcpMetrics(registry: Registry): McpMetrics {
  const registers = [registry];
  const connections = new Counter({
    name: 'hummingbird_mcp_connections_total',
    help: 'Sessions that runs wanted with MCP servers, by server and outcome: ok, failed.',
    labelNames: ['server', 'outcome'],
    registers,
  });
  const withheld = new Counter({
    name: 'hummingbird_mcp_tools_withheld_total',
    help: 'Allowed tools of MCP servers that a run did not get, by server and reason.',
    labelNames: ['server', 'reason'],
    registers,
  });
  const calls = new Counter({
    name: 'hummingbird_mcp_calls_total',
    help: 'Calls of tools of MCP servers, by server and outcome: ok, error (the tool says so), failed, refused.',
    labelNames: ['server', 'outcome'],
    registers,
  });
  return {
    connected: (server, ok) => connections.inc({ server, outcome: ok ? 'ok' : 'failed' }),
    withheld: (server, reason) => withheld.inc({ server, reason }),
    call: (server, outcome) => calls.inc({ server, outcome }),
  };
}

export const noMcpMetrics: McpMetrics = {
  connected: () => undefined,
  withheld: () => undefined,
  call: () => undefined,
};
