import { stringify } from 'yaml';
import type { McpListSettings } from '../cli/mcp-command.ts';
import { createHttpClient } from '../http/client.ts';
import { createRedactor } from '../http/redaction.ts';
import { SettingsError } from '../settings/operator.ts';
import { toolToken } from '../settings/tokens.ts';
import { connect } from '../sources/mcp/connection.ts';
import { definitionDigest, offerOf } from '../sources/mcp/definition.ts';
import type { McpServerConfig } from '../sources/mcp/server-config.ts';
import { proxiesOf } from './proxies.ts';

/** Prints what a server offers, as Markdown would show it, and the digests as `approvals` of a workflow. */
export async function listMcpTools(
  settings: McpListSettings,
  process: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly stdout: { write(text: string): unknown };
    readonly stderr: { write(text: string): unknown };
    readonly interrupt: AbortSignal;
  },
): Promise<void> {
  const { env, interrupt } = process;
  const token = tokenOf(settings, env);
  const redactor = createRedactor(token === undefined ? [] : [token.reveal()]);
  const http = createHttpClient({ redactor, proxies: proxiesOf(env) });
  const config = configOf(settings, token);
  try {
    const connection = await connect(
      config,
      {
        http,
        // Whoever types it may start it.
        programs: config.reach.kind === 'Program' ? [config.reach.program] : [],
        path: env['PATH'] ?? '/usr/bin:/bin',
        onComplaint: (_server, line) => process.stderr.write(`${redactor.redact(line)}\n`),
      },
      interrupt,
    );
    try {
      const tools = await connection.listTools(interrupt);
      const approvals = tools.map((tool) => ({ tool: tool.name, definitionSHA256: definitionDigest(tool) }));
      const shown = tools.map((tool) => {
        const offer = offerOf(config.name, tool);
        return offer.kind === 'Usable'
          ? {
              tool: tool.name,
              description: offer.definition.description,
              parameters: offer.definition.parameters,
            }
          : { tool: tool.name, unusable: offer.why };
      });
      process.stdout.write(redactor.redact(stringify({ tools: shown, approvals })));
    } finally {
      await connection.close();
    }
  } finally {
    await http.close();
  }
}

function tokenOf({ tokenEnv }: McpListSettings, env: Readonly<Record<string, string | undefined>>) {
  if (tokenEnv === undefined) return undefined;
  const value = env[tokenEnv];
  if (value === undefined || value === '')
    throw new SettingsError(`--token-env: ${tokenEnv} is not set: put the server's token there`);
  return toolToken(value);
}

function configOf(
  { name, url, command: [program = '', ...args] }: McpListSettings,
  token: McpServerConfig['token'],
): McpServerConfig {
  return {
    ...{ name, token, allowedTools: [], requireApproval: [], pinned: new Map() },
    reach: url === undefined ? { kind: 'Program', program, args } : { kind: 'Http', url },
  };
}
