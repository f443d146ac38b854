import { type Command, InvalidArgumentError } from 'commander';
import { SettingsError } from '../settings/operator.ts';

/** The server that `hummingbird mcp list` looks at, as a workflow would name it. */
export interface McpListSettings {
  readonly name: string;
  readonly url: string | undefined;
  /** Program by its full path, and its arguments; empty when there is a `url`. */
  readonly command: readonly string[];
  /** Environment variable that holds the token. */
  readonly tokenEnv: string | undefined;
}

interface McpListFlags {
  readonly name: string;
  readonly url?: string;
  readonly tokenEnv?: string;
}

export function addMcpCommand(program: Command, list: (settings: McpListSettings) => Promise<void>): void {
  program
    .command('mcp')
    .description('look at MCP servers')
    .command('list')
    .description(
      "print a server's tools as a model would see them, and the digests that pin their definitions",
    )
    .argument('[command...]', 'behind --: program of a server, by its full path, and its arguments')
    .option('--url <url>', 'address of a server that speaks streamable HTTP', address)
    .option('--token-env <name>', 'environment variable that holds the token for the server')
    .option('--name <name>', 'name of the server in the workflow', 'server')
    .action(async (command: readonly string[], { name, url, tokenEnv }: McpListFlags) => {
      if ((url === undefined) === (command.length === 0))
        throw new SettingsError('give exactly one of --url and, behind --, a command');
      await list({ name, url, command, tokenEnv });
    });
}

function address(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('it must be an http:// or https:// address');
  return text;
}
