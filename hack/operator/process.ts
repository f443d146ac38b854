import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Namespaces } from './install.ts';

export interface OperatorProcessOptions {
  readonly kubeconfigPath: string;
  readonly namespaces: Namespaces;
  readonly gitlabUrl: string;
  readonly secrets: { readonly orchestratorToken: string; readonly markerKeys: string };
  readonly logFile: string;
  readonly replicaId?: string;
  readonly queue?: { readonly url: string; readonly fifoUrl?: string; readonly endpoint: string };
  readonly store: { readonly bucket: string; readonly endpoint: string } | { readonly folder: string };
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface OperatorProcess {
  readonly pid: number;
  readonly healthUrl: string;
  readonly logFile: string;
  readonly running: boolean;
  /** Resolves when /readyz says so; rejects with the end of the log when the process ends before. */
  waitReady(timeoutMs?: number): Promise<void>;
  /** The exit code, or undefined after a signal. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<number | undefined>;
  log(): string;
}

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The operator as users run it, as a process of its own, so that it can be killed like one. */
export async function startOperatorProcess(options: OperatorProcessOptions): Promise<OperatorProcess> {
  const healthPort = await freePort();
  mkdirSync(dirname(options.logFile), { recursive: true });
  const log = createWriteStream(options.logFile, { flags: 'a' });
  const child = spawn(
    join(root, 'node_modules', '.bin', 'node'),
    [join(root, 'src', 'main.ts'), 'operator', ...flags(options, healthPort), ...(options.args ?? [])],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        AWS_ACCESS_KEY_ID: 'local',
        AWS_SECRET_ACCESS_KEY: 'local',
        ORCHESTRATOR_GITLAB_TOKEN: options.secrets.orchestratorToken,
        HUMMINGBIRD_MARKER_KEYS: options.secrets.markerKeys,
        ...options.env,
      },
    },
  );
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const exited = new Promise<number | undefined>((resolve) => {
    child.on('error', () => resolve(undefined));
    child.on('exit', (code) => resolve(code ?? undefined));
  });
  const healthUrl = `http://127.0.0.1:${healthPort}`;
  const running = () => child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid ?? 0,
    healthUrl,
    logFile: options.logFile,
    get running() {
      return running();
    },
    log: () => readFileSync(options.logFile, 'utf8'),
    async waitReady(timeoutMs = 180_000) {
      const deadline = Date.now() + timeoutMs;
      while (running()) {
        const ready = await fetch(`${healthUrl}/readyz`).then(
          (response) => response.ok,
          () => false,
        );
        if (ready) return;
        if (Date.now() > deadline)
          throw new Error(`the operator is not ready after ${timeoutMs} ms:\n${tail(options.logFile)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`the operator ended before it was ready:\n${tail(options.logFile)}`);
    },
    async stop(signal = 'SIGTERM') {
      if (running()) child.kill(signal);
      return exited;
    },
  };
}

function flags(options: OperatorProcessOptions, healthPort: number): string[] {
  const { queue, store, namespaces } = options;
  return [
    `--kubeconfig=${options.kubeconfigPath}`,
    `--namespace=${namespaces.agents}`,
    `--sandbox-namespace=${namespaces.sandboxes}`,
    `--gitlab-url=${options.gitlabUrl}`,
    `--replica-id=${options.replicaId ?? 'operator-0'}`,
    `--health-port=${healthPort}`,
    ...(queue === undefined ? [] : [`--queue-url=${queue.url}`, `--queue-endpoint=${queue.endpoint}`]),
    ...(queue?.fifoUrl === undefined ? [] : [`--fifo-queue-url=${queue.fifoUrl}`]),
    ...('folder' in store
      ? [`--store-dir=${store.folder}`]
      : [`--bucket=${store.bucket}`, `--bucket-endpoint=${store.endpoint}`]),
  ];
}

function tail(file: string): string {
  return readFileSync(file, 'utf8').split('\n').slice(-15).join('\n');
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
