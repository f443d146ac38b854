#!/usr/bin/env node
import { basename, isAbsolute } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { addConfigCommand } from './cli/config-command.ts';
import { addEvalCommand } from './cli/eval-command.ts';
import { addMcpCommand } from './cli/mcp-command.ts';
import { addRunCommand } from './cli/run-command.ts';
import { type OperatorSettings, readOperatorSecrets, SettingsError } from './settings/operator.ts';

const env = process.env;
/** Each command loads what it needs when it is called: --help and a wrong flag are answered at once. */
const program = new Command(programName())
  .description('Runs LLM agents on GitLab merge requests, in sandboxes without network or credentials')
  .showHelpAfterError('(hummingbird --help says what there is)')
  // Before the commands, which take it over.
  .exitOverride();

program
  .command('operator')
  .description(
    'reconcile AgentRuns, AgentSessions, AgentWorkflows and SandboxPools, and make runs from queue messages',
  )
  .option('--kubeconfig <file>', 'kubeconfig; default: KUBECONFIG, the pod, ~/.kube/config')
  .option('--context <name>', 'context of the kubeconfig')
  .option('--namespace <name>', 'namespace of the agents, their configuration and Secrets', 'hummingbird')
  .option('--sandbox-namespace <name>', 'namespace of the sandboxes', 'hummingbird-sandboxes')
  .requiredOption('--gitlab-url <url>', 'GitLab, as https://gitlab.example.org', url)
  .option(
    '--queue-url <url>',
    'SQS queue with GitLab webhooks; without it only applied AgentRuns are worked on',
    queueUrl,
  )
  .option(
    '--fifo-queue-url <url>',
    'SQS FIFO queue between router and workers, which keeps the order of a discussion; without it workers read --queue-url',
    fifoQueueUrl,
  )
  .option('--queue-endpoint <url>', 'another SQS endpoint than AWS (an emulator, a VPC endpoint)', url)
  .option('--bucket <name>', 'S3 bucket for checkpoints and sessions')
  .option('--bucket-endpoint <url>', 'another S3 endpoint than AWS', url)
  .option('--store-dir <folder>', 'a folder instead of a bucket; one replica only')
  .option('--region <name>', 'AWS region', env['AWS_REGION'] ?? 'us-east-1')
  .option(
    '--replica-id <name>',
    'name of this replica, the same after a restart',
    env['HUMMINGBIRD_REPLICA_ID'] ?? env['HOSTNAME'] ?? 'operator-0',
  )
  .option(
    '--config <file>',
    'configuration file; its workflows are kept in the namespace, and it is read again when it changes',
  )
  .option('--max-concurrent-runs <n>', 'runs reconciled side by side', positive, 50)
  .option('--health-port <port>', 'port of /healthz, /readyz and /metrics; 0: any free one', count, 8080)
  .option(
    '--marker-prefix <word>',
    "first word of the comment that marks the operator's notes",
    'hummingbird-session',
  )
  .option(
    '--accept-unsigned-markers',
    'let notes of our bots from before markers were signed count, and their sessions be gone on with',
    false,
  )
  .option('--command-prefix <word>', 'word that begins a command in a note', word, '/hummingbird')
  .option(
    '--mcp-command <path>',
    'program that workflows may have started as an MCP server, by its full path; may be repeated',
    programs,
  )
  .option(
    '--chart-repository <url>',
    'chart repository at a private address, http://, https:// or oci://; may be repeated. Public ones need none',
    repositories,
  )
  .option('--log-level <level>', 'trace, debug, info, warn, error', 'info')
  .action(async (flags: OperatorFlags) => {
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => stop.abort(new Error(signal)));
    const settings = operatorSettings(flags);
    const { keepOperating } = await import('./cli/operator.ts');
    const { joinOperator } = await import('./main/operator.ts');
    await keepOperating(() => joinOperator(settings, env), stop.signal);
  });

interface OperatorFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly sandboxNamespace: string;
  readonly gitlabUrl: string;
  readonly queueUrl?: string;
  readonly fifoQueueUrl?: string;
  readonly queueEndpoint?: string;
  readonly bucket?: string;
  readonly bucketEndpoint?: string;
  readonly storeDir?: string;
  readonly region: string;
  readonly replicaId: string;
  readonly config?: string;
  readonly maxConcurrentRuns: number;
  readonly healthPort: number;
  readonly markerPrefix: string;
  readonly acceptUnsignedMarkers: boolean;
  readonly commandPrefix: string;
  readonly mcpCommand?: readonly string[];
  readonly chartRepository?: readonly string[];
  readonly logLevel: string;
}

function operatorSettings(flags: OperatorFlags): OperatorSettings {
  return {
    kubeconfig: flags.kubeconfig,
    context: flags.context,
    namespace: flags.namespace,
    sandboxNamespace: flags.sandboxNamespace,
    replicaId: flags.replicaId,
    gitlabUrl: flags.gitlabUrl,
    markerPrefix: flags.markerPrefix,
    acceptUnsignedMarkers: flags.acceptUnsignedMarkers,
    commandPrefix: flags.commandPrefix,
    mcpCommands: flags.mcpCommand ?? [],
    chartRepositories: flags.chartRepository ?? [],
    configPath: flags.config,
    maxConcurrentRuns: flags.maxConcurrentRuns,
    healthPort: flags.healthPort,
    logLevel: flags.logLevel,
    queue: queueOf(flags),
    store: storeOf(flags),
    secrets: readOperatorSecrets(env),
  };
}

function queueOf({
  queueUrl: address,
  fifoQueueUrl: fifoUrl,
  queueEndpoint: endpoint,
  region,
}: OperatorFlags): OperatorSettings['queue'] {
  if (address === undefined && fifoUrl !== undefined)
    throw new SettingsError(
      '--fifo-queue-url without --queue-url: name the standard queue that SNS feeds as well',
    );
  if (address !== undefined && address === fifoUrl)
    throw new SettingsError(
      '--fifo-queue-url and --queue-url name one queue: leave --fifo-queue-url out to work with one',
    );
  return address === undefined ? undefined : { url: address, fifoUrl, endpoint, region };
}

interface StoreFlags {
  readonly bucket?: string;
  readonly bucketEndpoint?: string;
  readonly storeDir?: string;
  readonly region: string;
}

function storeOf({ bucket, bucketEndpoint, storeDir, region }: StoreFlags): OperatorSettings['store'] {
  if ((bucket === undefined) === (storeDir === undefined))
    throw new SettingsError(
      'give exactly one of --bucket (S3) and --store-dir (a folder): checkpoints and sessions need a place',
    );
  if (bucket !== undefined) return { kind: 'S3', bucket, endpoint: bucketEndpoint, region };
  return { kind: 'Folder', path: storeDir ?? '' };
}

function url(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('it must be an http:// or https:// address');
  return text;
}

/** Not parsed: SQS names a queue by this text, and emulators use host names that are none. */
function queueUrl(text: string): string {
  if (!/^https?:\/\/[^/]+\/.+/.test(text))
    throw new InvalidArgumentError('it must be the address of a queue, as SQS gives it');
  return text;
}

function fifoQueueUrl(text: string): string {
  if (!queueUrl(text).endsWith('.fifo'))
    throw new InvalidArgumentError('it must be the address of a FIFO queue, whose name ends in .fifo');
  return text;
}

function word(text: string): string {
  if (!/^\S{2,64}$/.test(text)) throw new InvalidArgumentError('it must be one word of 2 to 64 characters');
  return text;
}

function programs(path: string, before: readonly string[] = []): readonly string[] {
  if (!isAbsolute(path)) throw new InvalidArgumentError('it must be a full path');
  return [...before, path];
}

function repositories(url: string, before: readonly string[] = []): readonly string[] {
  if (!/^(https?|oci):\/\/[^\s@]+$/.test(url))
    throw new InvalidArgumentError('it must be an address that begins with http://, https:// or oci://');
  return [...before, url];
}

function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('it must be a whole number');
  return Number(text);
}

function positive(text: string): number {
  const number = count(text);
  if (number < 1) throw new InvalidArgumentError('it must be 1 or more');
  return number;
}

const configPath = env['CONFIG_PATH'] ?? 'hummingbird.yaml';
addRunCommand(program, { config: configPath }, async (settings, json) => {
  const { runProcess } = await import('./main/run-process.ts');
  const { stdout, stderr } = process;
  process.exitCode = await runProcess(settings, json, { env, stdout, stderr, interrupt: interruption() });
});

addConfigCommand(program, { file: configPath }, async (task) => {
  const { runConfigTask } = await import('./cli/config.ts');
  process.exitCode = await runConfigTask(task, { env, stdout: process.stdout });
});

addMcpCommand(program, async (settings) => {
  const { listMcpTools } = await import('./main/mcp-list.ts');
  const { stdout, stderr } = process;
  await listMcpTools(settings, { env, stdout, stderr, interrupt: interruption() });
});

addEvalCommand(program, async (settings) => {
  const { evaluate } = await import('./main/eval.ts');
  const { stdout, stderr } = process;
  process.exitCode = await evaluate(settings, { env, stdout, stderr, interrupt: interruption() });
});

program
  .command('transcript')
  .argument('<run|dir>', 'an AgentRun, or a folder that "run --save-session" writes')
  .description('print what a run has said and done, as Markdown')
  .option('-f, --follow', 'go on printing until the run ends', false)
  .option('--kubeconfig <file>', 'kubeconfig; default: KUBECONFIG, the pod, ~/.kube/config')
  .option('--context <name>', 'context of the kubeconfig')
  .option('-n, --namespace <name>', 'namespace of the AgentRun', 'hummingbird')
  .option('--bucket <name>', "the operator's S3 bucket")
  .option('--bucket-endpoint <url>', 'another S3 endpoint than AWS', url)
  .option('--store-dir <folder>', "the operator's folder instead of a bucket")
  .option('--region <name>', 'AWS region', env['AWS_REGION'] ?? 'us-east-1')
  .action(async (what: string, flags: TranscriptFlags) => {
    const { showTranscript } = await import('./main/transcript.ts');
    const { follow, namespace, kubeconfig, context, bucket, storeDir } = flags;
    const store = bucket === undefined && storeDir === undefined ? undefined : storeOf(flags);
    const settings = { what, follow, namespace, kubeconfig, context, store };
    await showTranscript(settings, { env, stdout: process.stdout, interrupt: interruption() });
  });

interface TranscriptFlags extends StoreFlags {
  readonly follow: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
}

/** kubectl starts `kubectl hummingbird` as a program of this name. */
function programName(): string {
  return basename(process.argv[1] ?? '').startsWith('kubectl-') ? 'kubectl hummingbird' : 'hummingbird';
}

/** The first signal asks, the second one ends the process: what it leaves behind ends by itself. */
function interruption(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(130);
      stop.abort(new Error(`interrupted by ${signal}`));
    });
  return stop.signal;
}

// Whoever reads has had enough (| head): what is still to be cleaned up is cleaned up all the same.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof Error)) throw error;
  // Commander has said what is wrong, or shown its help.
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  process.stderr.write(`hummingbird: ${error.message}\n`);
  process.exitCode = error instanceof SettingsError ? 2 : 1;
}
// What is still being tried (an Event for an API server that is away) must not keep the process.
process.exit();
