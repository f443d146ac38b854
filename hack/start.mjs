// Entry of every npm script. Plain JavaScript without packages: it runs on Node 20 before anything is
// installed, installs the locked packages when they are missing or stale, and goes on with their Node 24.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, 'node_modules', '.bin', name);
const node = bin('node');

/** name -> argument vectors, run one after the other; what people type behind the name goes to the last. */
const commands = {
  demo: [[node, 'hack/demo/main.ts']],
  test: [[node, 'hack/test/main.ts']],
  bench: [[node, '--expose-gc', 'bench/main.ts']],
  check: [[node, 'hack/test/main.ts', '--quick']],
  eval: [[node, 'src/main.ts', 'eval']],
  lint: [
    [node, bin('biome'), 'check', '.'],
    [node, bin('depcruise'), 'src', 'hack', 'test', 'bench'],
  ],
  typecheck: [[node, bin('tsc'), '-p', 'tsconfig.json']],
  generate: [
    [node, 'src/crds/generate-main.ts'],
    [node, 'hack/docs/generate-main.ts'],
  ],
  build: [[node, bin('tsc'), '-p', 'tsconfig.build.json']],
};

const [name, ...rest] = process.argv.slice(2);
const steps = commands[name];
if (!steps) {
  console.error(`Unknown command ${JSON.stringify(name)}; there are: ${Object.keys(commands).join(', ')}`);
  process.exit(2);
}
if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error(
    `Node ${process.versions.node} is too old to install the packages: install Node 20 or later.`,
  );
  process.exit(2);
}
installPackages();
for (const [index, step] of steps.entries()) {
  const [program, ...args] = index === steps.length - 1 ? [...step, ...rest] : step;
  const status = await run(program, args);
  if (status !== 0) process.exit(status);
}

function installPackages() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const stamp = join(root, 'node_modules', '.installed-lock');
  if (existsSync(node) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.error('Installing the locked npm packages (about a minute the first time)');
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (done.status !== 0) {
    console.error(
      'npm ci failed: see its output above; `npm run` needs npm and a reachable package registry.',
    );
    process.exit(done.status ?? 1);
  }
  writeFileSync(stamp, wanted);
}

/** Runs one step with our Node first in PATH; signals reach it, so that it can clean up before it ends. */
function run(program, args) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH ?? ''}` },
    });
    const forward = (signal) => child.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward);
    child.on('error', (error) => {
      console.error(`${program} did not start: ${error.message}`);
      resolve(1);
    });
    child.on('exit', (code, signal) => resolve(code ?? (signal ? 128 : 1)));
  });
}
