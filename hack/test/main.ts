// npm test: every check and every test, then one line `N passed, N failed` that machines read.
// npm run check (--quick): the same without the cluster.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

const quick = process.argv.includes('--quick');
const filters = process.argv.slice(2).filter((word) => word !== '--quick');
const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
const started = Date.now();

if (filters.length === 0) {
  await check('lint', ['biome', 'check', '.']);
  await check('types', ['tsc', '-p', 'tsconfig.json']);
  await check('import arrows', ['depcruise', 'src', 'hack', 'test', 'bench']);
  await check('generated files are fresh', ['node', 'src/crds/generate-main.ts', '--check']);
}
await vitest('unit');
if (!quick) await vitest('cluster');

console.log(`\nin ${Math.round((Date.now() - started) / 1000)} s`);
const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : '';
console.log(`${tally.passed} passed, ${tally.failed} failed${skipped}`);
process.exitCode = tally.failed > 0 || tally.passed === 0 ? 1 : 0;

async function check(name: string, command: readonly string[]): Promise<void> {
  const before = Date.now();
  const { code, output } = await run(command, 'capture');
  const ok = code === 0;
  tally[ok ? 'passed' : 'failed'] += 1;
  console.log(`${ok ? '✓' : '✗'} ${name} (${((Date.now() - before) / 1000).toFixed(1)} s)`);
  if (!ok) console.log(output);
}

const Report = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number().default(0),
  numFailedTestSuites: z.number().default(0),
  success: z.boolean(),
});

async function vitest(project: string): Promise<void> {
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
        ...filters,
      ],
      'show',
    );
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text === undefined) {
      console.log(`vitest (${project}) ended with ${code} before it wrote a report`);
      tally.failed += 1;
      return;
    }
    const report = Report.parse(JSON.parse(text));
    tally.passed += report.numPassedTests;
    tally.failed += report.numFailedTests;
    tally.skipped += report.numPendingTests + report.numTodoTests;
    // A file that does not load, a hook or an unhandled rejection fails the run without a failed test.
    if (code !== 0 && report.numFailedTests === 0) tally.failed += 1;
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
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString('utf8') }));
  });
}
