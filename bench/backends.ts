import { randomUUID } from 'node:crypto';
import type { Cluster } from '../hack/cluster/cluster.ts';
import { ensurePodman } from '../hack/podman/podman.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { execConnection } from '../src/kube/exec-connection.ts';
import { silentLogger } from '../src/kube/log.ts';
import { createTransport } from '../src/kube/transport.ts';
import { podSandbox } from '../src/sandbox/pod/pod.ts';
import { podmanSandbox } from '../src/sandbox/podman/podman.ts';
import { podOpener } from '../src/sandbox/pool/open-pod.ts';
import { podPool } from '../src/sandbox/pool/pool.ts';
import { type Sandbox, SCRATCH } from '../src/sandbox/port.ts';
import { createNamespace, deleteNamespace, sandboxPod } from '../test/cluster/shared.ts';
import { aWorld } from '../test/operator/world.ts';
import { median, percentile, type Rows, rounded } from './row.ts';

/** A started sandbox of one backend. */
interface Opened {
  readonly sandbox: Sandbox;
  close(): Promise<void>;
}

export interface Backend {
  readonly name: string;
  open(cluster: () => Promise<Cluster>): Promise<Opened>;
  /** Milliseconds and MB/s that a machine of two processors should reach. */
  readonly goals: { readonly execMs: number; readonly inMbs: number; readonly outMbs: number };
}

const ROUND_TRIPS = 30;
const STREAMS = 5;
const STREAM_BYTES = 80_000_000;
const CHUNK = Buffer.alloc(64 * 1024);

/** A round trip and both directions of 80 MB through the sandbox port, as the agent's tools and sessions use it. */
export async function backendBench(
  { name, open, goals }: Backend,
  cluster: () => Promise<Cluster>,
): Promise<Rows> {
  const { sandbox, close } = await open(cluster);
  try {
    const trips = await samples(ROUND_TRIPS, () => roundTrip(sandbox));
    const sent = await samples(STREAMS, () => send(sandbox));
    const received = await samples(STREAMS, () => receive(sandbox));
    const speed = (times: readonly number[]) => ({
      value: rounded(STREAM_BYTES / 1000 / median(times)),
      better: 'higher' as const,
      unit: 'MB/s',
      runs: STREAMS,
      note: `80 MB in p50 ${rounded(median(times))} ms`,
    });
    return {
      [`${name}.exec.p50ms`]: {
        value: rounded(median(trips)),
        goal: goals.execMs,
        better: 'lower',
        unit: 'ms',
        runs: ROUND_TRIPS,
        note: `p95 ${rounded(percentile(trips, 0.95))} ms`,
      },
      [`${name}.stream.in.mbs`]: { ...speed(sent), goal: goals.inMbs },
      [`${name}.stream.out.mbs`]: { ...speed(received), goal: goals.outMbs },
    };
  } finally {
    await sandbox.cleanup();
    await close();
  }
}

export const PODMAN: Backend = {
  name: 'podman',
  goals: { execMs: 300, inMbs: 80, outMbs: 80 },
  async open() {
    const image = await ensurePodman((line) => console.error(line));
    const sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger });
    await sandbox.start();
    return { sandbox, close: async () => {} };
  },
};

export const POD: Backend = {
  name: 'pod',
  goals: { execMs: 60, inMbs: 80, outMbs: 80 },
  async open(cluster) {
    const one = await cluster();
    const namespace = await createNamespace(one);
    await one.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(sandboxPod('box')));
    const connection = connect({ kind: 'Files', paths: [one.kubeconfigPath] });
    const transport = createTransport(connection);
    const sandbox = podSandbox({
      ...{ namespace, pod: 'box', logger: silentLogger, client: createClient(transport) },
      connection: execConnection(connection),
      ref: { kind: 'Pod', name: 'box', namespace },
      deletePod: () => deleteNamespace(one, namespace),
    });
    await sandbox.start();
    return { sandbox, close: () => transport.close() };
  },
};

export const POOL: Backend = {
  name: 'pool',
  goals: POD.goals,
  async open(cluster) {
    const one = await cluster();
    const world = await aWorld(one, {
      replicas: 1,
      scripts: { 'bench-script': () => ({ text: 'unused' }) },
    });
    const connection = connect({ kind: 'Files', paths: [one.kubeconfigPath] });
    const transport = createTransport(connection);
    const kube = createClient(transport);
    const provider = podPool({
      kube,
      openPod: podOpener({ connection: execConnection(connection), client: kube, logger: silentLogger }),
    });
    const request = {
      ...{ runUid: randomUUID(), runName: 'bench', runNamespace: world.namespaces.agents },
      ...{ workflow: 'bench', epoch: 1, labels: {}, reapBy: new Date(Date.now() + 1_800_000) },
      pool: { namespace: world.namespaces.sandboxes, name: 'analysis' },
    };
    for (;;) {
      const result = await provider.claim(request);
      if (result.kind === 'Unavailable') throw new Error(`bench: ${result.message}`);
      if (result.kind === 'Claimed') {
        await result.sandbox.start();
        // Its reaper would find a sandbox whose run does not exist.
        await world.operator.stop();
        return {
          sandbox: result.sandbox,
          async close() {
            await transport.close();
            await world.close();
          },
        };
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  },
};

async function samples(count: number, action: () => Promise<void>): Promise<readonly number[]> {
  await action();
  const times: number[] = [];
  for (let run = 0; run < count; run += 1) {
    const before = performance.now();
    await action();
    times.push(performance.now() - before);
  }
  return times;
}

async function roundTrip(sandbox: Sandbox): Promise<void> {
  const { kind } = await sandbox.exec('true');
  if (kind !== 'Exited') throw new Error(`bench: true ${kind}`);
}

async function send(sandbox: Sandbox): Promise<void> {
  const counted = await sandbox.streamExec('wc -c', zeros());
  if (Buffer.from(counted.stdout).toString().trim() !== String(STREAM_BYTES))
    throw new Error(`bench: ${Buffer.from(counted.stdout).toString()} bytes of ${STREAM_BYTES} arrived`);
}

async function receive(sandbox: Sandbox): Promise<void> {
  const path = `${SCRATCH}/bench`;
  await sandbox.exec(`[ -f ${path} ] || head -c ${STREAM_BYTES} /dev/zero >${path}`);
  let bytes = 0;
  for await (const chunk of sandbox.readFile(path)) bytes += chunk.length;
  if (bytes !== STREAM_BYTES) throw new Error(`bench: ${bytes} bytes of ${STREAM_BYTES} came out`);
}

async function* zeros(): AsyncIterable<Uint8Array> {
  for (let left = STREAM_BYTES; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, left);
}
