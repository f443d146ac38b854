import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { ACCESS, type FakeGitLab, startGitLab } from '../fakes/gitlab/index.ts';
import type { FakeMergeRequest, FakePipeline, FakeProject } from '../fakes/gitlab/state.ts';
import { type OpenAiServer, type Script, startOpenAi } from '../fakes/openai/server.ts';

export const PROJECT = 'group/app';
export const MODEL_KEY = 'model-key-canary-0001';
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command as a process of its own. */
export interface Running {
  readonly child: ChildProcess;
  /** Resolves when stderr holds the pattern; rejects when the process ends before. */
  sees(pattern: RegExp): Promise<void>;
  /** The same of stdout. */
  prints(pattern: RegExp): Promise<void>;
  readonly ended: Promise<Ended>;
}

/** A GitLab, a model server and a configuration file, for runs of the real command. */
export interface CliWorld {
  readonly folder: string;
  readonly image: string;
  readonly gitlab: FakeGitLab;
  readonly project: FakeProject;
  readonly mergeRequest: FakeMergeRequest;
  readonly pipeline: FakePipeline;
  readonly openai: OpenAiServer;
  readonly tokens: { readonly orchestrator: string; readonly action: string; readonly tool: string };
  readonly env: Readonly<Record<string, string>>;
  /** Writes the file; `changes` go into the one workflow. */
  configure(changes?: object, settings?: object): Promise<void>;
  start(args: readonly string[], env?: Readonly<Record<string, string>>, program?: string): Running;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** With a terminal of its own; stdout holds what it shows. */
  onTerminal(args: readonly string[]): Promise<Ended>;
  path(name: string): string;
  /** Names of sandboxes that this world's runs have left on the machine. */
  leftovers(): readonly string[];
  close(): Promise<void>;
}

export async function aCliWorld(scripts: Readonly<Record<string, Script>>): Promise<CliWorld> {
  const image = await ownImage();
  const [gitlab, openai, folder] = await Promise.all([
    startGitLab({}),
    startOpenAi({ scripts, apiKey: MODEL_KEY }),
    mkdtemp(join(tmpdir(), 'hummingbird-cli-')),
  ]);
  const scene = aScene(gitlab);
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '/root',
    GITLAB_TOKEN_RO: scene.tokens.tool,
    ACTION_TOKEN: scene.tokens.action,
    MODEL_KEY,
  };
  const model = { name: Object.keys(scripts)[0], base_url: openai.url, api_key_env: 'MODEL_KEY' };
  const world: CliWorld = {
    ...{ folder, image, gitlab, openai, env },
    ...scene,
    path: (name) => join(folder, name),
    async configure(changes = {}, settings = {}) {
      const config = {
        settings: { gitlab_url: gitlab.url, sandbox: { image }, model, timeout: '60s', ...settings },
        workflows: {
          'analyze-failures': {
            data_sources: { gitlab: { token_env: 'GITLAB_TOKEN_RO' } },
            projects: { [PROJECT]: { action_tokens: { gitlab: 'ACTION_TOKEN' } } },
            ...changes,
          },
        },
      };
      await writeFile(join(folder, 'hummingbird.yaml'), stringify(config));
    },
    start: (args, changes = {}, program = MAIN) =>
      spawned(process.execPath, [program, ...args], folder, { ...env, ...changes }),
    onTerminal: (args) => {
      const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ');
      return spawned('script', ['-qec', command, '/dev/null'], folder, env).ended;
    },
    run: (args, changes) => world.start(['run', ...args], changes).ended,
    leftovers: () => sandboxesOf(image),
    async close() {
      await Promise.all([gitlab.stop(), openai.stop()]);
      podman('untag', image, image);
      await rm(folder, { recursive: true, force: true });
    },
  };
  await world.configure();
  return world;
}

function spawned(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Running {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
      for (const look of watchers) look();
    });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...output }));
  });
  const shows = (name: keyof typeof output, pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!pattern.test(output[name])) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
      void ended.then(() => reject(new Error(`${pattern} never came; stderr:\n${output.stderr}`)));
    });
  return {
    ...{ child, ended },
    sees: (pattern) => shows('stderr', pattern),
    prints: (pattern) => shows('stdout', pattern),
  };
}

let worlds = 0;

/** The sandbox image under a name of its own: by it this world's sandboxes are told from those of others. */
async function ownImage(): Promise<string> {
  const image = await ensurePodman((line) => console.error(`podman: ${line}`));
  worlds += 1;
  const own = `localhost/hummingbird-cli-${process.pid}-${worlds}:1`;
  podman('tag', image, own);
  return own;
}

function sandboxesOf(image: string): readonly string[] {
  const lines = podman('ps', '--all', '--format', '{{.Image}} {{.Names}}').split('\n');
  return lines.filter((line) => line.startsWith(`${image} `)).map((line) => line.slice(image.length + 1));
}

function podman(...args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync('podman', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`podman ${args.join(' ')}: ${stderr}`);
  return stdout;
}

function aScene({ state }: FakeGitLab) {
  const project = state.project({ path: PROJECT });
  const ada = state.user({ username: 'ada' });
  state.member(project, ada, ACCESS.developer);
  const mergeRequest = state.mergeRequest(project, { author: ada, title: 'Add a cache' });
  const pipeline = state.pipeline(project, { user: ada, mergeRequest });
  state.job(pipeline, { name: 'unit-tests', trace: 'FAIL cache is empty after clear\n' });
  const operator = state.user({ username: 'operator', bot: true });
  state.member(project, operator, ACCESS.developer);
  return {
    ...{ project, mergeRequest, pipeline },
    tokens: {
      orchestrator: state.token({ user: operator }),
      action: state.projectBot(project, { name: 'analyze-failures' }).token,
      tool: state.projectBot(project, { name: 'reader', level: ACCESS.reporter, scopes: ['read_api'] }).token,
    },
  };
}
