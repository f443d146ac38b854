import { spawn } from 'node:child_process';
import type { Cluster } from '../hack/cluster/cluster.ts';
import { connect } from '../src/kube/config.ts';
import { type ExecOptions, exec } from '../src/kube/exec.ts';
import { execConnection } from '../src/kube/exec-connection.ts';
import { createNamespace, deleteNamespace, sandboxPod } from '../test/cluster/shared.ts';
import { median, percentile, type Row, type Rows, rounded } from './row.ts';

const ROUND_TRIPS = 50;
const STREAMS = 7;
const STREAM_BYTES = 80 * 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024);

/** Our exec against `kubectl exec` as a process, in turn, so that whatever else the machine does meets both. */
export async function execBench(cluster: Cluster): Promise<Rows> {
  const namespace = await createNamespace(cluster);
  try {
    await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(sandboxPod('box')));
    await cluster.kubectl(['wait', '-n', namespace, 'pod/box', '--for=condition=Ready', '--timeout=60s']);
    const kubectl = kubectlExec(cluster, namespace);
    const ours = ourExec(cluster, namespace);
    const drain = ['sh', '-c', 'cat >/dev/null'];
    const produce = ['head', '-c', String(STREAM_BYTES), '/dev/zero'];
    return {
      'exec.ratio': row(
        0.5,
        await pairs(
          ROUND_TRIPS,
          () => ours(['true']),
          () => kubectl(['true']),
        ),
      ),
      'stream.in.ratio': row(
        1.2,
        await pairs(
          STREAMS,
          () => ours(drain, { stdin: zeros() }),
          () => kubectl(drain, { input: true }),
        ),
      ),
      'stream.out.ratio': row(
        1.2,
        await pairs(
          STREAMS,
          () => ours(produce, { stdout: countTo(STREAM_BYTES) }),
          () => kubectl(produce),
        ),
      ),
    };
  } finally {
    await deleteNamespace(cluster, namespace);
  }
}

interface Pairs {
  readonly ours: readonly number[];
  readonly theirs: readonly number[];
}

async function pairs(count: number, ours: () => Promise<void>, theirs: () => Promise<void>): Promise<Pairs> {
  const [mine, other]: [number[], number[]] = [[], []];
  await ours();
  await theirs();
  for (let run = 0; run < count; run += 1) {
    mine.push(await timed(ours));
    other.push(await timed(theirs));
  }
  return { ours: mine, theirs: other };
}

async function timed(action: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await action();
  return performance.now() - before;
}

function row(goal: number, { ours, theirs }: Pairs): Row {
  const times = (samples: readonly number[]) =>
    `p50 ${rounded(median(samples))} ms, p95 ${rounded(percentile(samples, 0.95))} ms`;
  return {
    value: rounded(median(ours) / median(theirs)),
    goal,
    better: 'lower',
    unit: 'x kubectl exec',
    runs: ours.length,
    note: `ours ${times(ours)}; kubectl ${times(theirs)}`,
  };
}

function ourExec(cluster: Cluster, namespace: string) {
  const connection = execConnection(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  return async (command: readonly string[], streams: Pick<ExecOptions, 'stdin' | 'stdout'> = {}) => {
    const { exitCode } = await exec(connection, {
      namespace,
      pod: 'box',
      container: 'sandbox',
      command,
      ...streams,
    });
    if (exitCode !== 0) throw new Error(`bench: ${command.join(' ')} ended with exit code ${exitCode}`);
  };
}

function kubectlExec({ kubectlPath, kubeconfigPath }: Cluster, namespace: string) {
  return async (command: readonly string[], { input = false } = {}) => {
    const args = [
      '--kubeconfig',
      kubeconfigPath,
      'exec',
      ...(input ? ['-i'] : []),
      '-n',
      namespace,
      'box',
      '--',
      ...command,
    ];
    // The input comes through a pipe, as it does for a program that has it to give.
    const source = input
      ? spawn('head', ['-c', String(STREAM_BYTES), '/dev/zero'], { stdio: ['ignore', 'pipe', 'ignore'] })
      : undefined;
    const child = spawn(kubectlPath, args, { stdio: [source?.stdout ?? 'ignore', 'ignore', 'inherit'] });
    // Both children have the pipe now; this process must not take from it.
    source?.stdout.destroy();
    const code = await new Promise((resolve, reject) => child.on('exit', resolve).on('error', reject));
    if (code !== 0)
      throw new Error(`bench: kubectl exec ${command.join(' ')} ended with exit code ${String(code)}`);
  };
}

async function* zeros(): AsyncIterable<Uint8Array> {
  for (let sent = 0; sent < STREAM_BYTES; sent += CHUNK.length) yield CHUNK;
}

/** Fails the run that lost bytes. */
function countTo(expected: number) {
  let bytes = 0;
  return {
    write: (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > expected) throw new Error(`bench: more than ${expected} bytes`);
    },
  };
}
