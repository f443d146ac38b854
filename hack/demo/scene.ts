import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { ACCESS, type FakeGitLab, startGitLab } from '../../test/fakes/gitlab/index.ts';
import type { FakeMergeRequest, FakePipeline } from '../../test/fakes/gitlab/state.ts';

export interface DemoScene {
  readonly gitlab: FakeGitLab;
  readonly projectPath: string;
  readonly mergeRequest: FakeMergeRequest;
  readonly pipeline: FakePipeline;
  readonly tokens: { readonly orchestrator: string; readonly action: string; readonly tool: string };
  /** What the merge request's own test suite prints, run just now. */
  readonly testOutput: string;
}

const PROJECT = 'acme/checkout';
const projectDir = fileURLToPath(new URL('./project/', import.meta.url));

/**
 * A GitLab stand-in with one merge request whose diff and whose test output are real: made here, by running things. The
 * tests have run in a job of GitLab, or elsewhere, which then reports statuses of its own.
 */
export async function demoScene(tests: 'InJob' | 'Elsewhere' = 'InJob'): Promise<DemoScene> {
  const gitlab = await startGitLab({});
  const { state } = gitlab;
  const project = state.project({ path: PROJECT });
  const author = state.user({ username: 'mira', name: 'Mira Sand' });
  state.member(project, author, ACCESS.developer);
  const diff = realDiff();
  const mergeRequest = state.mergeRequest(project, {
    author,
    title: 'Count in cents',
    description: 'Floating-point euros gave totals like 9.999999. Prices are whole cents from here on.',
    sourceBranch: 'count-in-cents',
    sha: createHash('sha1').update(diff).digest('hex'),
    diffs: splitDiff(diff).map(({ path, text }) => state.diff({ newPath: path, oldPath: path, diff: text })),
  });
  const run = realTestRun();
  const pipeline = state.pipeline(project, {
    user: author,
    mergeRequest,
    status: run.passed ? 'success' : 'failed',
  });
  state.job(pipeline, {
    name: 'lint',
    stage: 'check',
    status: 'success',
    trace: 'Nothing to complain about.\n',
  });
  if (tests === 'InJob')
    state.job(pipeline, {
      name: 'unit-tests',
      stage: 'test',
      status: run.passed ? 'success' : 'failed',
      failureReason: run.passed ? undefined : 'script_failure',
      trace: framed(run),
    });
  const operatorBot = state.user({ username: 'hummingbird-operator', bot: true });
  state.member(project, operatorBot, ACCESS.developer);
  const reader = state.projectBot(project, {
    name: 'hummingbird reader',
    level: ACCESS.reporter,
    scopes: ['read_api'],
  });
  return {
    gitlab,
    projectPath: PROJECT,
    mergeRequest,
    pipeline,
    tokens: {
      orchestrator: state.token({ user: operatorBot, scopes: ['api'] }),
      action: state.projectBot(project, { name: 'analyze-failures', level: ACCESS.developer }).token,
      tool: reader.token,
    },
    testOutput: run.output,
  };
}

interface TestRun {
  readonly passed: boolean;
  readonly output: string;
}

/** The project's own test suite, run now. */
function realTestRun(): TestRun {
  const command = spawnSync(process.execPath, ['test/run.js'], {
    cwd: `${projectDir}after`,
    encoding: 'utf8',
  });
  const output = `${command.stdout}${command.stderr}`.replaceAll(`file://${projectDir}after/`, '');
  return { passed: command.status === 0, output };
}

/** Its log, with the frame that a runner puts around it. */
function framed({ passed, output }: TestRun): string {
  const now = Math.floor(Date.now() / 1000);
  const end = passed
    ? '\u001b[32;1mJob succeeded\u001b[0;m'
    : '\u001b[31;1mERROR: Job failed: exit code 1\u001b[0;m';
  return [
    `section_start:${now}:step_script\r\u001b[0K\u001b[36;1mExecuting "step_script" stage of the job script\u001b[0;m`,
    '\u001b[32;1m$ node test/run.js\u001b[0;m',
    output.trimEnd(),
    `section_end:${now + 1}:step_script\r\u001b[0K${end}`,
    '',
  ].join('\n');
}

function realDiff(): string {
  const command = spawnSync('git', ['diff', '--no-index', '--no-color', '--no-prefix', 'before', 'after'], {
    cwd: projectDir,
    encoding: 'utf8',
  });
  // 1: there are differences.
  if (command.status !== 1)
    throw new Error(`git diff of the demo project: ${command.stderr || command.error?.message}`);
  return command.stdout;
}

/** GitLab gives a diff file by file, without git's header lines. */
function splitDiff(diff: string): { readonly path: string; readonly text: string }[] {
  return diff
    .split(/^diff --git .*\n/m)
    .filter((part) => part !== '')
    .map((part) => {
      const path = /^\+\+\+ after\/(.*)$/m.exec(part)?.[1] ?? '';
      return { path, text: part.slice(part.indexOf('@@')) };
    });
}
