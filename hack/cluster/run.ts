import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';

export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string | Uint8Array;
  /** Each line of stderr as it comes. */
  readonly onStderr?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** A command that ended with a status other than 0. */
export class CommandError extends Error {
  readonly exitCode: number | null;
  readonly stderr: string;

  constructor(argv: readonly string[], exitCode: number | null, signal: string | null, stderr: string) {
    super(`${argv.slice(0, 4).join(' ')} … ended with ${signal ?? exitCode}: ${stderr.trim().slice(-2000)}`);
    this.name = 'CommandError';
    this.exitCode = exitCode;
    this.stderr = stderr;
  }
}

/** Runs a command to its end and returns its stdout; stdout and stderr are kept whole, so only for commands that say little. */
export function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const [command, ...args] = argv;
  if (command === undefined) throw new Error('run: no command given');
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { ...process.env, PATH: toolPath(), ...options.env },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let pending = '';
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      stderr.push(chunk);
      if (!options.onStderr) return;
      const lines = (pending + chunk.toString()).split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) options.onStderr(line);
    });
    child.on('error', (error) => reject(new Error(`${command}: ${error.message}`, { cause: error })));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(stdout).toString());
      else reject(new CommandError(argv, code, signal, Buffer.concat(stderr).toString()));
    });
    // A command may end without reading its input; its exit status is what counts then.
    child.stdin.on('error', () => {});
    child.stdin.end(options.stdin ?? '');
  });
}

/** PATH with the directories of administration programs, which a user's own PATH often lacks. */
export function toolPath(): string {
  return [process.env['PATH'] ?? '', '/usr/sbin', '/sbin'].join(delimiter);
}
