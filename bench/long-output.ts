import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../hack/cluster/cluster.ts';
import { createNamespace, deleteNamespace, sandboxPod } from '../test/cluster/shared.ts';
import type { LongOutputReport } from './long-output-process.ts';
import { type Rows, rounded } from './row.ts';

const GIB = 1024 ** 3;
const BYTES = 10 * GIB;
const MIB = 1024 * 1024;

/** 10 GiB of output of one command in a pod: growth of RSS of a process that does nothing else. */
export async function longOutputBench(cluster: Cluster): Promise<Rows> {
  const namespace = await createNamespace(cluster);
  try {
    await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(sandboxPod('box')));
    await cluster.kubectl(['wait', '-n', namespace, 'pod/box', '--for=condition=Ready', '--timeout=60s']);
    const { growthBytes, milliseconds } = await longOutputProcess(cluster.kubeconfigPath, namespace);
    const seconds = milliseconds / 1000;
    return {
      'exec10g.rss.mb': {
        value: rounded(growthBytes / MIB),
        goal: 32,
        better: 'lower',
        unit: 'MiB',
        runs: 1,
        note: `10 GiB in ${rounded(seconds)} s, ${rounded(BYTES / MIB / seconds)} MiB/s`,
      },
    };
  } finally {
    await deleteNamespace(cluster, namespace);
  }
}

async function longOutputProcess(...args: readonly string[]): Promise<LongOutputReport> {
  const script = fileURLToPath(new URL('long-output-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--expose-gc', script, ...args, String(BYTES)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`bench: ${script} ended with exit code ${String(code)}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
