import { type Command, Option } from 'commander';

export type ConfigTask =
  | {
      readonly kind: 'check';
      readonly file: string;
      readonly json: boolean;
      /** Whether the variables that the file names must be set. */
      readonly environment: boolean;
    }
  | {
      readonly kind: 'to-crs';
      readonly file: string;
      readonly namespace: string;
      readonly sandboxNamespace: string;
    }
  | { readonly kind: 'schema' };

/** Adds `config` to the program; `action` gets what is asked. */
export function addConfigCommand(
  program: Command,
  defaults: { readonly file: string },
  action: (task: ConfigTask) => Promise<void>,
): void {
  const config = program
    .command('config')
    .description('check a configuration file, or turn it into resources of the operator');
  const file = [
    '[file]',
    'configuration file; default: CONFIG_PATH, ./hummingbird.yaml',
    defaults.file,
  ] as const;

  config
    .command('check')
    .argument(...file)
    .description('say everything that is wrong with a configuration file, each with its line and column')
    .option('--env', 'the environment variables that it names must be set as well', false)
    .addOption(
      new Option('-o, --output <format>', 'what stdout gets').choices(['text', 'json']).default('text'),
    )
    .addHelpText('after', '\nExit codes: 0 the file can be used; 2 it cannot, and stdout says why.')
    .action(async (path: string, flags: { readonly env: boolean; readonly output: string }) =>
      action({ kind: 'check', file: path, json: flags.output === 'json', environment: flags.env }),
    );

  config
    .command('to-crs')
    .argument(...file)
    .description('print AgentWorkflows and a SandboxPool that do the same; Secrets are named, never printed')
    .option('-n, --namespace <name>', 'namespace of the AgentWorkflows', 'hummingbird')
    .option(
      '--sandbox-namespace <name>',
      'namespace of the SandboxPool, where the file names none',
      'hummingbird-sandboxes',
    )
    .addHelpText(
      'after',
      '\nExit codes: 0 printed; 2 the file is wrong, or the operator could not do what it says.',
    )
    .action(async (path: string, flags: { readonly namespace: string; readonly sandboxNamespace: string }) =>
      action({ kind: 'to-crs', file: path, ...flags }),
    );

  config
    .command('schema')
    .description('print the JSON schema of the configuration file, for editors')
    .action(async () => action({ kind: 'schema' }));
}
