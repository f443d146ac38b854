import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { withLock } from '../cluster/lock.ts';
import { installMissing } from '../cluster/packages.ts';
import { cacheRoot, type Log } from '../cluster/paths.ts';
import { run } from '../cluster/run.ts';

const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url));

export interface MotoServer {
  /** `http://127.0.0.1:PORT` for every service. */
  readonly address: string;
  stop(): Promise<void>;
}

/**
 * Installs moto, an emulator of AWS, into a Python environment below the cache where it is missing (some 15 s), and
 * returns that environment's python. Needs a reachable Python package index; root where Debian's python3-venv is missing.
 */
export async function ensureMoto(log: Log): Promise<string> {
  const python = await pythonWithVenv(log);
  const version = await run([python, '-c', 'import sys; print(sys.version)']);
  const digest = createHash('sha256').update(version).update(readFileSync(requirements)).digest('hex');
  const folder = join(cacheRoot(), `moto-${digest.slice(0, 12)}`);
  const complete = join(folder, '.complete');
  const inside = join(folder, 'bin', 'python');
  if (existsSync(complete)) return inside;
  await withLock(`${folder}.lock`, 'installing moto', log, async () => {
    if (existsSync(complete)) return;
    log('installing moto (some 15 s)');
    // Scripts in it carry its path, so it is made where it stays; the mark says that it is whole.
    rmSync(folder, { recursive: true, force: true });
    await run([python, '-m', 'venv', folder]);
    await run([inside, '-m', 'pip', 'install', '--quiet', '--requirement', requirements]);
    writeFileSync(complete, '');
  });
  return inside;
}

/** A server on a free port of the loopback interface. It ends with this process, whatever becomes of it. */
export async function startMoto(log: Log): Promise<MotoServer> {
  const python = await ensureMoto(log);
  const child = spawn(python, ['-c', SERVER], { stdio: ['pipe', 'ignore', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const said: string[] = [];
  const address = new Promise<string>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(line)?.[1];
      if (found) resolve(found);
      // One line for each request afterwards.
      if (said.length < 50) said.push(line);
    });
  });
  const failed = ended.then(() => {
    throw new Error(`moto ended before it listened:\n${said.join('\n')}`);
  });
  child.stdin.on('error', () => {});
  return {
    address: await Promise.race([address, failed]),
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

/** It ends at the end of its input, which also comes when whoever started it is killed. */
const SERVER = `
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(["-H", "127.0.0.1", "-p", "0"])
`;

async function pythonWithVenv(log: Log): Promise<string> {
  if (await hasVenv('python3')) return 'python3';
  await installMissing([{ anyOf: ['python3 with venv'], package: 'python3-venv' }], log);
  // Debian's own, whatever else is in PATH.
  if (await hasVenv('/usr/bin/python3')) return '/usr/bin/python3';
  throw new Error(
    'python3 has no venv and pip (Debian: python3-venv); moto is installed into such an environment',
  );
}

const hasVenv = (python: string): Promise<boolean> =>
  run([python, '-c', 'import venv, ensurepip']).then(
    () => true,
    () => false,
  );
