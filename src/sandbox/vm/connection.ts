import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../kube/clock.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import { CappedOutput } from '../command/collect.ts';
import {
  isSpawnFailure,
  type Program,
  type ProgramExit,
  type ProgramStreams,
  runProgram,
} from '../command/program.ts';
import { SandboxLostError, SandboxUnavailableError } from '../port.ts';
import { connectionFolder } from './folder.ts';
import { BOOT_ID_COMMAND, Greeting } from './greeting.ts';
import { checkIdentity, type MachineIdentity, otherHostKey, pin, pinnedOn } from './identity.ts';
import { connectArgs, remoteCommand, type SshFiles, type SshTarget, sessionArgs, sshFiles } from './ssh.ts';
import { type MachineOutlook, machineOutlook } from './state.ts';

export interface MachineLogin {
  readonly user: string;
  /** Text of the private key file. */
  readonly privateKey: string;
}

export interface ConnectionOptions {
  readonly kube: Pick<KubeClient, 'get' | 'patch'>;
  readonly namespace: string;
  readonly name: string;
  /** Where known: another machine of the same name is then not taken for it. */
  readonly uid?: string;
  /** Asked for at every connection, kept nowhere. */
  readonly login: () => Promise<MachineLogin>;
  readonly clock: Clock;
  /** Ids that are used once. */
  readonly newId: () => string;
  /** Folder for the connection's socket and, while it is being made, the private key. */
  readonly tempDir: string;
  /** Of this process; ssh gets PATH of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The machine could not be reached this time. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
  /** Undefined when the machine has an address and does not answer there. */
  readonly outlook: MachineOutlook | undefined;

  constructor(message: string, outlook?: MachineOutlook) {
    super(message);
    this.outlook = outlook;
  }
}

/** TCP, handshake and login have ConnectTimeout each at the most; a guest may take its time to start a shell. */
const CONNECT_MS = 20_000;
const POLL_MS = 10;
const COMPLAINT_BYTES = 2048;

/** How one command ended, as far as ssh says. */
export interface SessionEnd {
  readonly exit: ProgramExit;
  /** What ssh itself complained about. */
  readonly complaint: string;
}

/**
 * One SSH connection to one machine, made when it is needed and again after it broke, shared by all commands. At
 * every connection the machine's object is read, and who answers is held to the host key and boot id of the first
 * contact.
 */
export class MachineConnection {
  readonly where: string;
  readonly #options: ConnectionOptions;
  #known: MachineIdentity | undefined;
  #folder: string | undefined;
  #open: OpenConnection | undefined;
  #opening: Promise<OpenConnection> | undefined;
  #sessions = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.where = `machine ${options.namespace}/${options.name}`;
  }

  /** What the machine's object says now. Throws KubeError. */
  async outlook(signal?: AbortSignal): Promise<MachineOutlook> {
    return machineOutlook(await this.#read(signal), this.#options.uid);
  }

  /** Rejects with `UnreachableError`, `SandboxLostError`, `SandboxUnavailableError` (no ssh here), or KubeError. */
  async connect(): Promise<void> {
    await this.#ready();
  }

  /** Runs the words in the machine. Rejects as `connect` does, or with the source's or a sink's error. */
  async session(words: readonly string[], streams: ProgramStreams): Promise<SessionEnd> {
    const { target, files, folder } = await this.#ready();
    const log = join(folder, `log-${this.#sessions++}`);
    const args = sessionArgs(target, files, { log, command: remoteCommand(words) });
    try {
      const exit = await runProgram({ name: 'ssh', args, ...this.#surroundings }, streams);
      return { exit, complaint: await complaintIn(log) };
    } finally {
      await rm(log, { force: true });
    }
  }

  /** Ends the connection and removes its folder; a later command would make another one. Never rejects. */
  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    const open = this.#open;
    this.#open = undefined;
    open?.end();
    await open?.ended;
    await this.#removeFolder();
  }

  async #ready(): Promise<OpenConnection> {
    if (this.#open?.alive) return this.#open;
    this.#opening ??= this.#make().finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  async #make(): Promise<OpenConnection> {
    const machine = await this.#read();
    const outlook = machineOutlook(machine, this.#options.uid);
    if (outlook.kind === 'Gone') throw new SandboxLostError(`sandbox ${this.where} is gone: ${outlook.why}`);
    if (outlook.kind === 'Starting' || machine === undefined)
      throw new UnreachableError(
        `${this.where} cannot be reached yet: ${outlook.kind === 'Starting' ? outlook.why : ''}`,
        outlook,
      );
    const { user, privateKey } = await this.#options.login();
    this.#folder ??= await connectionFolder(this.#options.tempDir, process.pid);
    const folder = this.#folder;
    const target = { address: outlook.address, user, alias: machine.metadata.uid ?? this.#options.name };
    const pinned = this.#known ?? pinnedOn(machine);
    const { open, bootId } = await this.#login(target, folder, pinned, privateKey);
    try {
      const met = { hostKey: await hostKeyIn(open.files.knownHosts), bootId };
      if (pinned === undefined) await pin(this.#options.kube, machine, met, this.where);
      else checkIdentity(this.where, pinned, met);
      this.#known = met;
    } catch (error) {
      open.end();
      await open.ended;
      throw error;
    }
    this.#open = open;
    void open.ended.then(() => this.#forget(open));
    return open;
  }

  /** It has broken: until somebody needs another one, nothing of it is kept. */
  async #forget(open: OpenConnection): Promise<void> {
    if (this.#open !== open || this.#opening !== undefined) return;
    this.#open = undefined;
    await this.#removeFolder();
  }

  async #removeFolder(): Promise<void> {
    const folder = this.#folder;
    this.#folder = undefined;
    if (folder !== undefined) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }

  /** The private key lies in its file for as long as this takes. */
  async #login(
    target: SshTarget,
    folder: string,
    pinned: MachineIdentity | undefined,
    privateKey: string,
  ): Promise<{ readonly open: OpenConnection; readonly bootId: string }> {
    const { clock, newId } = this.#options;
    const files = sshFiles(folder);
    const log = join(folder, 'log');
    const greeting = new Greeting(newId());
    // What it says before it knows of its log.
    const stderr = new CappedOutput(COMPLAINT_BYTES);
    const command = remoteCommand(BOOT_ID_COMMAND(greeting.mark));
    const kill = new AbortController();
    await rm(files.socket, { force: true });
    await rm(log, { force: true });
    await writeFile(files.knownHosts, pinned === undefined ? '' : `${target.alias} ${pinned.hostKey}\n`);
    try {
      await writeFile(files.key, privateKey, { mode: 0o600, flag: 'w' });
      const ended = runProgram(
        {
          name: 'ssh',
          args: connectArgs(target, files, { pinned: pinned !== undefined, log, command }),
          ...this.#surroundings,
        },
        { stdin: 'open', stdout: greeting, stderr, signal: kill.signal },
      );
      const open = new OpenConnection({ target, files, folder, ended, end: () => kill.abort() });
      const begun = clock.monotonicMs();
      while (open.alive && greeting.bootId === undefined && clock.monotonicMs() - begun < CONNECT_MS)
        await Promise.race([sleep(clock, POLL_MS), open.ended]);
      if (open.alive && greeting.bootId !== undefined) return { open, bootId: greeting.bootId };
      const inTime = !open.alive;
      open.end();
      await open.ended;
      if (open.failure !== undefined) throw open.failure;
      throw this.#refused(inTime ? await complaintIn(log, stderr) : `no answer after ${CONNECT_MS / 1000} s`);
    } finally {
      await rm(files.key, { force: true });
    }
  }

  #refused(complaint: string): Error {
    if (/host key verification failed|identification has changed/i.test(complaint))
      return otherHostKey(this.where);
    return new UnreachableError(`ssh to ${this.where} failed: ${complaint}`);
  }

  async #read(signal?: AbortSignal): Promise<VirtualMachineInstance | undefined> {
    const { kube, namespace, name } = this.#options;
    return kube.get(VIRTUAL_MACHINE_INSTANCE, { namespace, name }, signal === undefined ? {} : { signal });
  }

  /** Nothing that names an agent, a proxy or another configuration. */
  get #surroundings(): Pick<Program, 'env' | 'cwd'> {
    const { env, tempDir } = this.#options;
    return { env: { PATH: env['PATH'], LC_ALL: 'C' }, cwd: tempDir };
  }
}

interface OpenConnectionOptions {
  readonly target: SshTarget;
  readonly files: SshFiles;
  readonly folder: string;
  readonly ended: Promise<unknown>;
  end(): void;
}

/** ssh's own process that holds the connection. */
class OpenConnection {
  readonly target: SshTarget;
  readonly files: SshFiles;
  readonly folder: string;
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly end: () => void;
  alive = true;
  /** Why there was no such process at all. */
  failure: Error | undefined;

  constructor({ target, files, folder, ended, end }: OpenConnectionOptions) {
    this.target = target;
    this.files = files;
    this.folder = folder;
    this.end = end;
    this.ended = ended.then(
      () => this.#over(undefined),
      (error: unknown) => this.#over(error),
    );
  }

  #over(error: unknown): void {
    this.alive = false;
    if (isSpawnFailure(error))
      this.failure = new SandboxUnavailableError(
        `ssh cannot be started (${error.code}): install OpenSSH's client ("apt-get install openssh-client")`,
        { cause: error },
      );
  }
}

/** The last line that says something. */
async function complaintIn(log: string, stderr?: CappedOutput): Promise<string> {
  const before = Buffer.from(stderr?.kept ?? []).toString('utf8');
  const text = `${before}\n${await readFile(log, 'utf8').catch(() => '')}`;
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const changed = lines.find((line) => /identification has changed/i.test(line));
  return changed ?? lines.at(-1) ?? 'the connection was closed';
}

/** Type and key of the one line that ssh has kept or been given. */
async function hostKeyIn(knownHosts: string): Promise<string> {
  const [line = ''] = (await readFile(knownHosts, 'utf8')).split('\n');
  return line.split(' ').slice(1, 3).join(' ');
}
