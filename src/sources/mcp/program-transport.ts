import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import {
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client';

export interface ProgramOptions {
  /** Full path. */
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Of one message. */
  readonly maxBytes: number;
  /** A line of what it writes to stderr. */
  readonly onComplaint: (line: string) => void;
}

/** How long a program may take to end by itself when its input has ended, and then after SIGTERM. */
const GRACE_MS = 2_000;
/** Of stderr: enough to see why it does not start. */
const COMPLAINT_LINES = 50;
const COMPLAINT_CHARS = 500;

/**
 * Messages over stdin and stdout of a program of ours. It has a process group of its own, which is gone when `close`
 * resolves; when this process dies first, its input ends.
 */
export class ProgramTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** These two tell the SDK what kind of transport this is. */
  readonly stderr = null;
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  readonly #options: ProgramOptions;
  readonly #buffer: ReadBuffer;
  #child: ChildProcess | undefined;
  #ended: Promise<void> | undefined;
  /** Its last words are read, too. */
  #silent: Promise<void> | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.#buffer = new ReadBuffer({ maxBufferSize: options.maxBytes });
  }

  async start(): Promise<void> {
    const { program, args, env } = this.#options;
    const child = spawn(program, [...args], {
      env,
      cwd: tmpdir(),
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      // Not `close`: what it has started may hold its output open.
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    this.#silent = new Promise((resolve) => child.once('close', () => resolve()));
    void this.#ended.then(() => this.onclose?.());
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stdout.on('error', (error) => this.onerror?.(error));
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#complain(child);
    await once(child, 'spawn');
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable) return Promise.reject(new Error(`${this.#options.program} has ended`));
    return new Promise((resolve, reject) => {
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.stdin?.end();
    if (!(await within(GRACE_MS, this.#ended))) {
      signalGroup(child.pid, 'SIGTERM');
      await within(GRACE_MS, this.#ended);
    }
    // Also when it has ended well: what it started may have stayed.
    signalGroup(child.pid, 'SIGKILL');
    await this.#ended;
    await within(GRACE_MS, this.#silent);
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
    this.#buffer.clear();
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      // Too long: nothing that follows can be understood.
      this.onerror?.(asError(error));
      if (this.#child?.pid !== undefined) signalGroup(this.#child.pid, 'SIGKILL');
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(asError(error));
      }
    }
  }

  /** Reads to the end, so that a program that writes much does not stand still. */
  #complain({ stderr }: ChildProcess): void {
    let lines = 0;
    let line = '';
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (lines >= COMPLAINT_LINES) return;
      const [end = '', ...begun] = text.split('\n');
      line = (line + end).slice(0, COMPLAINT_CHARS);
      for (const next of begun) {
        if (line !== '' && lines < COMPLAINT_LINES) this.#options.onComplaint(line);
        if (line !== '') lines += 1;
        line = next.slice(0, COMPLAINT_CHARS);
      }
    });
  }
}

async function within(ms: number, happening: Promise<void> | undefined): Promise<boolean> {
  const patience = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => patience.resolve(false), ms);
  try {
    return await Promise.race([happening?.then(() => true) ?? true, patience.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // Nobody is left in it.
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
