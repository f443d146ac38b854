// npm test: every check and every test, then one line `N passed, N failed` that machines read.
// npm run check (--quick): the same without Podman and without the cluster.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePackages } from '../cluster/packages.ts';
import { conformanceTable, summaries } from './conformance.ts';
import {
  afterSecondRun,
  closingLine,
  exitCode,
  failedFiles,
  failedTests,
  mayRunAgain,
  NOTHING,
  Report,
  withCheck,
  withReport,
} from './tally.ts';

const quick = process.argv.includes('--quick');
const filters = process.argv.slice(2).filter((word) => word !== '--quick');
let tally = NOTHING;
/** The signal that asked to stop: what runs is ended, and nothing more is begun. */
let interrupted: NodeJS.Signals | undefined;
let running: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    interrupted = signal;
    running?.kill(signal);
  });
const started = Date.now();
/** Tests that passed at their second run only. */
const unsteady: string[] = [];
const reports: Report[] = [];

if (filters.length === 0) {
  await check('lint', ['biome', 'check', '.']);
  await check('types', ['tsc', '-p', 'tsconfig.json']);
  await check('import arrows', ['depcruise', 'src', 'hack', 'test', 'bench']);
  await check('generated files are fresh', ['node', 'src/crds/generate-main.ts', '--check']);
  await check('generated pages are fresh', ['node', 'hack/docs/generate-main.ts', '--check']);
}
// Some unit tests try the sandbox's scripts on busybox, which is among them.
if (!quick)
  await ensurePackages((line) => console.log(line)).catch((error: unknown) => console.log(String(error)));
await vitest('unit');
if (!quick) {
  await vitest('podman');
  await vitest('cluster');
}

for (const text of [conformanceTable(reports), ...summaries(reports)])
  if (text !== '') console.log(`\n${text}`);
for (const name of unsteady) console.log(`unsteady, passed at its second run only: ${name}`);
console.log(`\nin ${Math.round((Date.now() - started) / 1000)} s`);
console.log(closingLine(tally));
process.exitCode = interrupted === undefined ? exitCode(tally) : 130;

async function check(name: string, command: readonly string[]): Promise<void> {
  if (interrupted !== undefined) return;
  const before = Date.now();
  const { code, output } = await run(command, 'capture');
  const ok = code === 0;
  tally = withCheck(tally, ok);
  console.log(`${ok ? '✓' : '✗'} ${name} (${((Date.now() - before) / 1000).toFixed(1)} s)`);
  if (!ok) console.log(output);
}

async function vitest(project: string): Promise<void> {
  if (interrupted !== undefined) return;
  const first = await runVitest(project, filters);
  // Unit tests touch nothing but Node: there a second run would hide a fault.
  if (first.report === undefined || project === 'unit' || !mayRunAgain(first.report, first.code)) {
    tally = withReport(tally, first.report, first.code);
    if (first.report !== undefined) reports.push(first.report);
    return;
  }
  console.log(`\n${project}: once more, alone: ${failedFiles(first.report).join(', ')}`);
  const again = await runVitest(project, failedFiles(first.report));
  const report = again.report && afterSecondRun(first.report, again.report);
  tally = withReport(tally, report ?? first.report, again.report === undefined ? first.code : again.code);
  reports.push(report ?? first.report);
  if (again.code === 0) unsteady.push(...failedTests(first.report));
}

async function runVitest(
  project: string,
  files: readonly string[],
): Promise<{ readonly report: Report | undefined; readonly code: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'hummingbird-test-'));
  const file = join(folder, 'report.json');
  try {
    const { code } = await run(
      [
        'vitest',
        'run',
        '--project',
        project,
        '--reporter=default',
        '--reporter=json',
        `--outputFile.json=${file}`,
        // A filter may name files of the other project only.
        ...(files.length === 0 ? [] : ['--passWithNoTests', ...files]),
      ],
      'show',
    );
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text === undefined) console.log(`vitest (${project}) ended with ${code} before it wrote a report`);
    return { report: text === undefined ? undefined : Report.parse(JSON.parse(text)), code };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function run(
  command: readonly string[],
  output: 'show' | 'capture',
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
      stdio: ['ignore', output === 'show' ? 'inherit' : 'pipe', output === 'show' ? 'inherit' : 'pipe'],
    });
    const chunks: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));
    running = child;
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString('utf8') }));
  });
}
