import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAuditLog } from '../../hack/audit/log.ts';
import { checkOwnership, type OwnershipReport } from '../../hack/audit/ownership.ts';
import { OWNERSHIP_POLICY } from '../../hack/audit/policy.ts';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { apply } from '../../hack/operator/install.ts';
import { run } from '../../hack/operator/objects.ts';
import type { OperatorProcess } from '../../hack/operator/process.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { until } from '../builders/pool.ts';
import { aWorld, PROJECT, type World } from './world.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Printed at the end of `npm test`. */
    summary?: string;
  }
}

const RUNS = Number(process.env['HUMMINGBIRD_SCALE_RUNS'] ?? 40);
const BURSTS = 4;
const POOL = 5;
/** A run takes a second or two of two processors; a loaded machine needs several times as long. */
const TIME_MS = 120_000 + RUNS * 10_000;
/** Every run leaves a session, each with a finalizer. */
const CLEANUP_MS = 120_000 + RUNS * 1_000;
const ANSWER = 'Seen in a sandbox of its own: ';
/** Says so when somebody has been in this sandbox before. */
const COMMAND = 'mkdir /tmp/data/mine && echo fresh || echo used';

describe(`three replicas, ${RUNS} runs in bursts, a pool of ${POOL} pods`, () => {
  let cluster: Cluster;
  let world: World;
  const operators: OperatorProcess[] = [];

  beforeAll(async () => {
    cluster = await startCluster({
      name: `scale-${process.pid}`,
      log: () => {},
      firewall: false,
      auditPolicy: OWNERSHIP_POLICY,
    });
    world = await aWorld(cluster, {
      replicas: POOL,
      scripts: {
        'test-script': ({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? { text: `${ANSWER}${JSON.stringify(messages.at(-1)?.content)}` }
            : { toolCalls: [{ name: 'sandbox_exec', args: { command: COMMAND } }] },
      },
      // Most of it is spent in line.
      workflowSpec: { limits: { timeout: '2h' } },
    });
    operators.push(world.operator);
    for (const replicaId of ['operator-1', 'operator-2'])
      operators.push(await world.restart({ replicaId, logFile: join(world.storeDir, `${replicaId}.log`) }));
    await Promise.all(operators.map((operator) => operator.waitReady(120_000)));
  }, 300_000);

  afterAll(async () => {
    await Promise.all(operators.map((operator) => operator.stop('SIGKILL')));
    await world?.close();
    await cluster?.stop();
  }, CLEANUP_MS);

  const runs = async (): Promise<readonly AgentRun[]> =>
    JSON.parse(await world.kubectl(['get', 'agentruns', '-n', world.namespaces.agents, '-o', 'json'])).items;
  const ended = ({ status }: AgentRun) => status?.completionTime !== undefined;

  it(
    'BR-37: no sandbox has two owners at any instant, no run two sandboxes, and nothing is left',
    async ({ task }) => {
      const begun = performance.now();
      const mergeRequests = Array.from({ length: RUNS }, (_, at) =>
        world.gitlab.state.mergeRequest(world.project, {
          author: world.mergeRequest.author,
          title: `Change ${at}`,
        }),
      );
      for (let burst = 0; burst < BURSTS; burst += 1) {
        const part = mergeRequests.filter((_, at) => at % BURSTS === burst);
        await apply(
          cluster,
          ...part.map(({ iid }) => run(world.namespaces, { name: `run-${iid}`, project: PROJECT, iid })),
        );
        // The next one comes while this one is half done.
        const enough = part.length * (burst + 0.5);
        await until('half of the burst', async () => (await runs()).filter(ended).length >= enough, TIME_MS);
      }
      const all = await until(
        'every run’s end',
        async () => {
          const found = await runs();
          return found.every(ended) && found;
        },
        TIME_MS,
      );
      const seconds = (performance.now() - begun) / 1000;
      expect(all).toHaveLength(RUNS);
      expect(all.filter(({ status }) => status?.phase !== 'Succeeded')).toEqual([]);

      await until('no pod of a run', async () => (await ownedPods()) === '', 120_000);
      const notes = mergeRequests.map(({ discussions }) =>
        discussions.flatMap((discussion) => discussion.notes.filter(({ author }) => author.bot)),
      );
      expect(notes.filter((own) => own.length !== 1)).toEqual([]);
      const texts = notes.flat().map(({ body }) => body);
      expect(texts.filter((body) => !body.includes(ANSWER) || !body.includes('fresh'))).toEqual([]);

      const holders = new Set(all.map(({ status }) => status?.holder?.replica.split('/')[0]));
      const uids = new Set(all.map(({ metadata }) => metadata.uid ?? ''));
      const report = checkOwnership(await readAuditLog(cluster.controlPlane.auditLogPath ?? ''), uids);
      const takenOver = all.filter(({ status }) => (status?.holder?.epoch ?? 0) > 1).length;
      task.meta.summary = summary(report, { runs: RUNS, replicas: holders.size, seconds, takenOver });
      console.log(task.meta.summary);
      expect(report.violations).toEqual([]);
      expect(report.claims.size).toBe(RUNS);
      expect([...holders].toSorted()).toEqual(['operator-0', 'operator-1', 'operator-2']);
    },
    TIME_MS,
  );

  const ownedPods = () =>
    world.kubectl([
      'get',
      'pods',
      '-n',
      world.namespaces.sandboxes,
      '-l',
      'hummingbird.dev/run',
      '-o',
      'name',
    ]);
});

function summary(
  { violations, pods, writes, commands, claims, conflicts, claimMs, waitMs }: OwnershipReport,
  {
    runs: count,
    replicas,
    seconds,
    takenOver,
  }: { runs: number; replicas: number; seconds: number; takenOver: number },
): string {
  return [
    `audit log: ${count} runs on ${replicas} replicas in ${seconds.toFixed(0)} s, ${takenOver} taken over; ${writes} writes of ${pods} pods, ${commands} commands:`,
    `${violations.length} violations of ownership, ${claims.size} claims, ${conflicts} refused as too late;`,
    `claim p50 ${quantile(claimMs, 0.5)} ms, p95 ${quantile(claimMs, 0.95)} ms;`,
    `from the run’s creation p50 ${quantile(waitMs, 0.5)} ms, p95 ${quantile(waitMs, 0.95)} ms`,
  ].join(' ');
}

function quantile(samples: readonly number[], share: number): string {
  const sorted = samples.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN).toFixed(0);
}
