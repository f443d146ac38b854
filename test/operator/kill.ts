import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperatorProcessOptions } from '../../hack/operator/process.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type S3Server, startS3 } from '../fakes/s3/server.ts';
import { type FaultProxy, type SeenRequest, startFaultProxy } from '../faults/proxy.ts';
import { aWorld, type World } from './world.ts';

/** A request of the operator that changes something for one run, or starts something in its sandbox. */
type Write = { readonly where: 'kubernetes' | 'gitlab' | 'store' | 'model'; readonly request: SeenRequest };

const BUCKET = 'sessions';
const SESSION_NOTE = 'The cache is not emptied.';

/**
 * One part of the writes, so that two files share the work: each kill takes some seconds.
 *
 * Promise 9: killed at any write, it converges to the same end. A first run shows which writes there are; then,
 * for each, a run is killed (SIGKILL) right after that write, its answer lost. (Before a write the world is as it was
 * after the one before.)
 */
export function describeKills(part: string, chosen: (index: number) => boolean): void {
  describe(`an operator that is killed at a write and started again (${part})`, () => {
    let world: World;
    let s3: S3Server;
    let proxies: { readonly where: Write['where']; readonly proxy: FaultProxy }[];
    let writes: readonly string[];

    beforeAll(async () => {
      const cluster = await sharedCluster();
      s3 = await startS3(BUCKET);
      world = await aWorld(cluster, {
        replicas: 2,
        scripts: {
          'test-script': ({ messages }) =>
            messages.some(({ role }) => role === 'tool')
              ? { text: SESSION_NOTE }
              : { toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo from the sandbox' } }] },
        },
        workflowSpec: { limits: { timeout: '120s' } },
        operator: (base) => throughProxies(base),
      });
      await world.operator.waitReady();
      writes = await writesOfACleanRun();
    }, 120_000);

    afterAll(async () => {
      await world?.close();
      await Promise.all([s3?.stop(), ...(proxies ?? []).map(({ proxy }) => proxy.close())]);
    });

    async function throughProxies(base: OperatorProcessOptions): Promise<Partial<OperatorProcessOptions>> {
      const cluster = await sharedCluster();
      const [kubernetes, gitlab, store] = await Promise.all([
        startFaultProxy({ target: cluster.server, targetCa: Buffer.from(cluster.caData, 'base64') }),
        startFaultProxy({ target: base.gitlabUrl }),
        startFaultProxy({ target: s3.endpoint }),
      ]);
      proxies = [
        { where: 'kubernetes', proxy: kubernetes },
        { where: 'gitlab', proxy: gitlab },
        { where: 'store', proxy: store },
      ];
      const folder = 'folder' in base.store ? base.store.folder : '';
      const kubeconfigPath = join(folder, 'through-proxy.kubeconfig');
      kubernetes.writeKubeconfig(
        kubeconfigPath,
        await cluster.serviceAccountToken(base.namespaces.agents, 'hummingbird-operator'),
      );
      const extraCa = join(folder, 'proxies.pem');
      await writeFile(extraCa, proxies.map(({ proxy }) => proxy.ca).join('\n'));
      return {
        kubeconfigPath,
        gitlabUrl: gitlab.server,
        store: { bucket: BUCKET, endpoint: store.server },
        env: { NODE_EXTRA_CA_CERTS: extraCa },
      };
    }

    /** One line per write of an undisturbed run, in order; its index is where later runs are killed. */
    async function writesOfACleanRun(): Promise<readonly string[]> {
      const seen: string[] = [];
      const rules = proxies.map(({ where, proxy }) =>
        proxy.rule({
          match: (request) => {
            if (concernsARun({ where, request })) seen.push(`${where} ${request.method} ${request.path}`);
            return false;
          },
          fault: { kind: 'Drop' },
        }),
      );
      await world.startRun('clean');
      const run = await world.waitEnd('clean');
      for (const rule of rules) rule.remove();
      expect(run.status?.phase).toBe('Succeeded');
      return seen;
    }

    /** Kills the operator at the `index`-th write; resolves when it is dead. */
    function killAt(index: number): { readonly done: Promise<boolean>; cancel(): void } {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      let count = -1;
      const victim = world.operator;
      const rules = proxies.map(({ where, proxy }) =>
        proxy.rule({
          match: (request) => {
            if (count >= index || !concernsARun({ where, request })) return false;
            count += 1;
            if (count !== index) return false;
            void victim.stop('SIGKILL').then(() => resolve(true));
            return true;
          },
          fault: { kind: 'LoseAnswer' },
        }),
      );
      const cancel = () => {
        for (const rule of rules) rule.remove();
        resolve(false);
      };
      return { done: promise, cancel };
    }

    it('sees every kind of write in a clean run', () => {
      const kinds = writes.map((write) =>
        write.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|analysis-[a-z0-9-]+|\d+/g, '*'),
      );
      for (const expected of [
        /agentruns\/clean$/,
        /agentruns\/clean\/status$/,
        /gitlab POST .*notes$/,
        /PATCH .*pods\//,
        /exec$/,
        /store PUT .*checkpoints/,
        /gitlab PUT .*notes/,
        /agentsessions/,
        /DELETE .*pods\//,
      ])
        expect(
          kinds.some((kind) => expected.test(kind)),
          `${expected} in\n${kinds.join('\n')}`,
        ).toBe(true);
    });

    it('ends with one note and no orphan pod, whichever write it was', async () => {
      const problems: string[] = [];
      const unreached: string[] = [];
      for (const [index, write] of writes.entries()) {
        if (!chosen(index)) continue;
        const name = `kill-${index}`;
        const before = world.notes().length;
        const kill = killAt(index);
        await world.startRun(name);
        // The last writes come after the end is visible: they are waited for a moment longer.
        const late = world.waitEnd(name, 60_000).then(() => pause(2_000));
        const killed = await Promise.race([kill.done, late.then(() => false)]);
        kill.cancel();
        if (!killed) {
          unreached.push(`${index} ${write}`);
          continue;
        }
        await world.restart();
        const run = await world.waitEnd(name, 60_000);
        const added = world.notes().slice(before);
        if (run.status?.phase !== 'Succeeded')
          problems.push(`${index} ${write}: ${run.status?.phase} ${JSON.stringify(run.status?.outcome)}`);
        if (added.length !== 1) problems.push(`${index} ${write}: ${added.length} notes`);
        else if (!added[0]?.includes(SESSION_NOTE))
          problems.push(`${index} ${write}: note says ${added[0]?.slice(0, 200)}`);
        const pods = await world.podsOf(run);
        if (pods.length > 0) problems.push(`${index} ${write}: ${pods.join(' ')} left`);
      }
      expect(problems).toEqual([]);
      // Progress that falls together is one write: a run may have one or two less than the first one had.
      expect(unreached.length, unreached.join('\n')).toBeLessThanOrEqual(2);
    }, 600_000);
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function concernsARun({ where, request }: Write): boolean {
  const { method, path, kind } = request;
  if (where === 'kubernetes') {
    if (kind === 'upgrade') return true;
    if (!/\/(agentruns|agentsessions|pods)\//.test(path))
      return method === 'POST' && /\/agentsessions$/.test(path);
    return method !== 'GET';
  }
  return method === 'POST' || method === 'PUT' || method === 'DELETE';
}
