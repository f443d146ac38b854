// npm run bench [-- NAME…]: measures, on a cluster of its own where one is needed, prints a table, writes bench/results.json.
// NAME is a key (exec.ratio) or the beginning of one (exec). It prints what is, not what should be.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Cluster, startCluster } from '../hack/cluster/cluster.ts';
import { backendBench, POD, PODMAN, POOL } from './backends.ts';
import { burstBench } from './burst.ts';
import { claimBench } from './claim.ts';
import { editsBench } from './edits.ts';
import { execBench } from './exec.ts';
import { firstRequestBench } from './first-request.ts';
import { gateBench } from './gate.ts';
import { gitlabBytesBench } from './gitlab-bytes.ts';
import { lingerBench } from './linger.ts';
import { longOutputBench } from './long-output.ts';
import { loopConcurrencyBench, loopOverheadBench } from './loop.ts';
import { machineClaimBench, VM, VMPOOL } from './machines.ts';
import { noteBench } from './note.ts';
import { page80Bench } from './page80.ts';
import type { Row, Rows } from './row.ts';
import { spillMemoryBench, spillTokensBench } from './spill.ts';
import { threadsBench } from './threads.ts';

interface Bench {
  /** The figures that it gives, so that naming one runs only what it needs. */
  readonly keys: readonly string[];
  /** The cluster is started when the first one asks for it. */
  run(cluster: () => Promise<Cluster>): Promise<Rows>;
}

const BENCHES: readonly Bench[] = [
  { keys: ['loop.overhead.p50ms'], run: loopOverheadBench },
  { keys: ['loop.concurrency.ratio'], run: loopConcurrencyBench },
  { keys: ['spill.tokens.ratio'], run: spillTokensBench },
  {
    keys: ['spill.rss.mb', 'spill.buffered.mb'],
    run: async (cluster) => spillMemoryBench(await cluster()),
  },
  { keys: ['page80.rss.mb', 'page80.buffered.mb'], run: page80Bench },
  {
    keys: ['exec.ratio', 'stream.in.ratio', 'stream.out.ratio'],
    run: async (cluster) => execBench(await cluster()),
  },
  {
    keys: ['claim.ratio', 'claim.p50ms', 'claim.p95ms'],
    run: async (cluster) => claimBench(await cluster()),
  },
  { keys: ['linger.ratio'], run: async (cluster) => lingerBench(await cluster()) },
  {
    keys: ['podman.exec.p50ms', 'podman.stream.in.mbs', 'podman.stream.out.mbs'],
    run: (cluster) => backendBench(PODMAN, cluster),
  },
  {
    keys: ['pod.exec.p50ms', 'pod.stream.in.mbs', 'pod.stream.out.mbs'],
    run: (cluster) => backendBench(POD, cluster),
  },
  {
    keys: ['pool.exec.p50ms', 'pool.stream.in.mbs', 'pool.stream.out.mbs'],
    run: (cluster) => backendBench(POOL, cluster),
  },
  {
    keys: ['vm.exec.p50ms', 'vm.stream.in.mbs', 'vm.stream.out.mbs'],
    run: (cluster) => backendBench(VM, cluster),
  },
  {
    keys: ['vmpool.exec.p50ms', 'vmpool.stream.in.mbs', 'vmpool.stream.out.mbs'],
    run: (cluster) => backendBench(VMPOOL, cluster),
  },
  { keys: ['vmclaim.ratio'], run: async (cluster) => machineClaimBench(await cluster()) },
  { keys: ['archive1g.rss.mb', 'joblog500.rss.mb', 'curl.ratio'], run: gitlabBytesBench },
  { keys: ['exec10g.rss.mb'], run: async (cluster) => longOutputBench(await cluster()) },
  { keys: ['gate.ratio'], run: gateBench },
  { keys: ['inventory.ms', 'edit.ms', 'inventory.rss.mb'], run: editsBench },
  {
    keys: ['note.p50ms', 'note.p95ms'],
    run: async (cluster) => noteBench(await cluster()),
  },
  { keys: ['threads.requests', 'threads.ms'], run: threadsBench },
  {
    keys: ['burst.eventsPerSecond', 'burst.lost'],
    run: async (cluster) => burstBench(await cluster()),
  },
  {
    keys: ['firstRequest.p50ms', 'firstRequest.p95ms'],
    run: async (cluster) => firstRequestBench(await cluster()),
  },
];

const resultsFile = fileURLToPath(new URL('results.json', import.meta.url));
const wanted = process.argv.slice(2);
const chosen = BENCHES.filter(
  ({ keys }) => wanted.length === 0 || keys.some((key) => wanted.some((name) => key.startsWith(name))),
);
if (chosen.length === 0) {
  console.error(
    `No figure is named ${wanted.join(', ')}; there are: ${BENCHES.flatMap(({ keys }) => keys).join(' ')}`,
  );
  process.exitCode = 2;
} else {
  await measure(chosen);
}

async function measure(benches: readonly Bench[]): Promise<void> {
  let starting: Promise<Cluster> | undefined;
  const cluster = (): Promise<Cluster> => {
    starting ??= startCluster({ name: `bench-${process.pid}`, log: (line) => console.error(line) });
    return starting;
  };
  const end = async (): Promise<void> => await (await starting)?.stop();
  const stop = () => void end().finally(() => process.exit(130));
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    for (const { keys, run } of benches) {
      console.error(`measuring ${keys.join(' ')}`);
      try {
        const rows = await run(cluster);
        await keep(rows);
        show(rows);
      } catch (error) {
        // The other figures are not this one's fault.
        console.error(`not measured: ${keys.join(' ')}:`, error);
        process.exitCode = 1;
      }
    }
  } finally {
    await end();
  }
}

/** Figures that were not measured this time stay as they were. */
async function keep(rows: Rows): Promise<void> {
  const before: Rows = JSON.parse(await readFile(resultsFile, 'utf8').catch(() => '{}'));
  await writeFile(resultsFile, `${JSON.stringify({ ...before, ...rows }, null, 2)}\n`);
}

function show(rows: Rows): void {
  for (const [key, row] of Object.entries(rows)) {
    const figure = `${row.value} ${row.unit}`;
    console.log(
      `${key.padEnd(20)} ${figure.padEnd(28)} goal ${String(row.goal).padEnd(6)} ${verdict(row)} (${row.runs} runs)${row.note ? ` ${row.note}` : ''}`,
    );
  }
}

function verdict({ value, goal, better }: Row): string {
  return (better === 'lower' ? value <= goal : value >= goal) ? 'met   ' : 'missed';
}
