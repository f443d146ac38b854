import { type Command, Option } from 'commander';
import { SANDBOX_BACKENDS, type SandboxBackend } from '../settings/file-schema.ts';
import type { RunSettings } from '../settings/run.ts';

/** Adds `run` to the program; `action` gets the checked flags and whether JSON is wanted. */
export function addRunCommand(
  program: Command,
  defaults: { readonly config: string },
  action: (settings: RunSettings, json: boolean) => Promise<void>,
): void {
  program
    .command('run')
    .description('run one analysis now, without the operator: the report goes to stdout, progress to stderr')
    .option('--event <json>', 'the event: {"project", "iid", "sha"?, "message"?}, or a GitLab webhook')
    .option('--event-file <file>', 'the same from a file; - is stdin')
    .option('-f, --filename <file>', 'an AgentRun manifest; its workflow is looked up in the configuration')
    .option(
      '--config <file>',
      'configuration file; default: CONFIG_PATH, ./hummingbird.yaml',
      defaults.config,
    )
    .option('--workflow <name>', 'workflow of the configuration; default: the only one of the project')
    .addOption(
      new Option('--sandbox <backend>', "where commands run; the workflow's own choice wins").choices(
        SANDBOX_BACKENDS,
      ),
    )
    .option('--image <image>', 'image of a podman or k8s sandbox; default: settings.sandbox.image')
    .option('--model <name>', "another model than the workflow's")
    .option('--save-session <dir>', 'save conversation, transcript and sandbox files there')
    .option('--resume <dir>', 'go on with the session saved there; needs --message')
    .option('--message <text>', 'what is asked: the reply of --resume, or a wish beside the event')
    .addOption(
      new Option('--publish <kind>', 'note: also post on the merge request')
        .choices(['none', 'note'])
        .default('none'),
    )
    .option('--kubeconfig <file>', 'cluster of a k8s or k8spool sandbox')
    .option('--context <name>', 'context of the kubeconfig')
    .option(
      '--namespace <name>',
      "the sandbox's namespace; default: that of --context, else settings.sandbox.namespace",
    )
    .option('--pool <name>', 'SandboxPool of a k8spool sandbox; default: settings.sandbox.pool')
    .addOption(
      new Option('-o, --output <format>', 'what stdout gets').choices(['text', 'json']).default('text'),
    )
    .option('-q, --quiet', 'no progress', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 answered; 3 a partial report, a limit was reached; 1 no report; 4 no sandbox; 5 out of time;
130 interrupted (Ctrl-C: what is known is printed and saved, the sandbox is removed); 2 flags, configuration,
environment or event are wrong.`,
    )
    .action(async (flags: RunFlags) => action(settingsOf(flags), flags.output === 'json'));
}

interface RunFlags {
  readonly event?: string;
  readonly eventFile?: string;
  readonly filename?: string;
  readonly config: string;
  readonly workflow?: string;
  readonly sandbox?: SandboxBackend;
  readonly image?: string;
  readonly model?: string;
  readonly saveSession?: string;
  readonly resume?: string;
  readonly message?: string;
  readonly publish: 'none' | 'note';
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly pool?: string;
  readonly output: 'text' | 'json';
  readonly quiet: boolean;
}

function settingsOf(flags: RunFlags): RunSettings {
  return {
    event: flags.event,
    eventFile: flags.eventFile,
    manifest: flags.filename,
    config: flags.config,
    workflow: flags.workflow,
    sandbox: flags.sandbox,
    image: flags.image,
    model: flags.model,
    saveSession: flags.saveSession,
    resume: flags.resume,
    message: flags.message,
    publish: flags.publish,
    kubeconfig: flags.kubeconfig,
    context: flags.context,
    namespace: flags.namespace,
    pool: flags.pool,
    quiet: flags.quiet,
  };
}
