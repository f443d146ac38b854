import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toolPath } from './run.ts';

/** A background process as written down in the state directory, so that any later process can find and end it. */
export interface ProcessRecord {
  readonly role: string;
  readonly pid: number;
  /** Boot and start time within it: with the pid they name one process for ever. */
  readonly startedAt: string;
  readonly argv: readonly string[];
}

export interface Processes {
  /**
   * Starts `argv` detached, its output appended to `log/<role>.log`, and returns its pid. `inside` enters the
   * namespaces of that pid; `forks` says that the process meant is the only child of the one started.
   */
  start(role: string, argv: readonly string[], options?: StartOptions): Promise<number>;
  /** Starts the role again with the command it had, when it is not running. */
  restart(role: string): Promise<number>;
  record(role: string): ProcessRecord | undefined;
  alive(role: string): boolean;
  /** Sends the signal if the process is still the one recorded. */
  signal(role: string, signal: NodeJS.Signals): void;
  /** SIGTERM (SIGKILL after `graceMs`), then waits for its end. */
  stop(role: string, graceMs?: number): Promise<void>;
  /** SIGKILL, then waits for its end. */
  kill(role: string): Promise<void>;
  /** The last lines the role wrote, for error messages. */
  logTail(role: string): string;
  roles(): readonly string[];
}

export interface StartOptions {
  readonly inside?: number;
  readonly forks?: boolean;
}

interface Stored extends ProcessRecord {
  readonly options: StartOptions;
}

/** The background processes of one state directory; the record is a file, so two objects on one directory agree. */
export function processesOf(stateDir: string): Processes {
  const file = join(stateDir, 'processes.json');
  const load = (): Record<string, Stored> => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {});
  const save = (stored: Stored) => {
    writeFileSync(`${file}.new`, JSON.stringify({ ...load(), [stored.role]: stored }, null, 1), {
      mode: 0o600,
    });
    renameSync(`${file}.new`, file);
  };
  const logFile = (role: string) => join(stateDir, 'log', `${role}.log`);

  const start = async (
    role: string,
    argv: readonly string[],
    options: StartOptions = {},
  ): Promise<number> => {
    const { inside, forks } = options;
    const entered =
      inside === undefined ? argv : ['nsenter', '-t', String(inside), '-m', '-n', '-p', '--', ...argv];
    const outer = await spawnDetached(entered, logFile(role));
    // nsenter stays outside the process namespace and forks: the process that matters is its child.
    const pid = inside === undefined && !forks ? outer : await onlyChild(outer);
    const startedAt = pid === undefined ? undefined : startOf(pid);
    if (pid === undefined || startedAt === undefined) {
      throw new Error(`${role} ended at once; its log says:\n${tail(logFile(role))}`);
    }
    save({ role, pid, startedAt, argv, options });
    return pid;
  };
  const alive = (role: string) => isAlive(load()[role]);
  const signal = (role: string, name: NodeJS.Signals) => {
    const record = load()[role];
    if (record && isAlive(record)) sendSignal(record.pid, name);
  };
  const gone = async (role: string, waitMs: number): Promise<boolean> => {
    const end = Date.now() + waitMs;
    while (alive(role)) {
      if (Date.now() > end) return false;
      await sleep(20);
    }
    return true;
  };
  const kill = async (role: string) => {
    signal(role, 'SIGKILL');
    if (!(await gone(role, 10_000)))
      throw new Error(`${role} (pid ${load()[role]?.pid}) does not end on SIGKILL: see ps`);
  };
  return {
    start,
    async restart(role) {
      const record = load()[role];
      if (!record) throw new Error(`${role} was never started in ${stateDir}`);
      return isAlive(record) ? record.pid : start(role, record.argv, record.options);
    },
    record: (role) => load()[role],
    alive,
    signal,
    async stop(role, graceMs = 5000) {
      signal(role, 'SIGTERM');
      if (!(await gone(role, graceMs))) await kill(role);
    },
    kill,
    logTail: (role) => tail(logFile(role)),
    roles: () => Object.keys(load()),
  };
}

/** Whether the recorded process still runs: same pid, same start time, not a zombie. */
export function isAlive(record: Pick<ProcessRecord, 'pid' | 'startedAt'> | undefined): boolean {
  return record !== undefined && startOf(record.pid) === record.startedAt;
}

/** Boot id and start time in clock ticks since that boot, or undefined for a process that ended. */
export function startOf(pid: number): string | undefined {
  const stat = statOf(pid);
  // A zombie with more than one thread still has threads that hold sockets and files.
  const ended = stat === undefined || stat.state === 'X' || (stat.state === 'Z' && stat.threads <= 1);
  return ended ? undefined : `${bootId()}+${stat.startTicks}`;
}

/** A pid and a start time may both come back after a restart of the machine; its boot id does not. */
function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

interface ProcessStat {
  readonly state: string;
  readonly ppid: number;
  readonly threads: number;
  readonly startTicks: string;
}

/** proc(5): after the command in parentheses (which may hold anything) come state, ppid, …; threads and start time are fields 20 and 22. */
function statOf(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return {
      state: fields[0] ?? 'X',
      ppid: Number(fields[1]),
      threads: Number(fields[17]),
      startTicks: fields[19] ?? '',
    };
  } catch {
    return undefined;
  }
}

async function spawnDetached(argv: readonly string[], logPath: string): Promise<number> {
  const [command, ...args] = argv;
  if (command === undefined) throw new Error('no command given');
  const fd = openSync(logPath, 'a', 0o600);
  try {
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', fd, fd],
      env: daemonEnvironment(),
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => reject(new Error(`${command}: ${error.message}`, { cause: error })));
    });
    child.unref();
    if (child.pid === undefined) throw new Error(`${command} has no pid`);
    return child.pid;
  } finally {
    closeSync(fd);
  }
}

/** Everything here talks to addresses of this machine; a proxy for the internet would only be in the way. */
function daemonEnvironment(): NodeJS.ProcessEnv {
  const direct = Object.entries(process.env).filter(([name]) => !/_proxy$/i.test(name));
  return { ...Object.fromEntries(direct), PATH: toolPath() };
}

async function onlyChild(parent: number): Promise<number | undefined> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    for (const entry of readdirSync('/proc')) {
      if (/^\d+$/.test(entry) && statOf(Number(entry))?.ppid === parent) return Number(entry);
    }
    if (startOf(parent) === undefined) return undefined;
    await sleep(10);
  }
  return undefined;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended between the check and the signal, which is what was wanted.
  }
}

function tail(path: string): string {
  if (!existsSync(path)) return '(no log)';
  return readFileSync(path, 'utf8').slice(-2000);
}
