import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OperatorProcessOptions } from '../../hack/operator/process.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type S3Server, startS3 } from '../fakes/s3/server.ts';
import { type FaultProxy, type SeenRequest, startFaultProxy } from '../faults/proxy.ts';
import { aWorld, type World, type WorldOptions } from './world.ts';

const BUCKET = 'sessions';

/** A world whose operator can be killed right after any write of a run. */
export interface KillWorld {
  readonly world: World;
  /** One line for each write of a run while `work` lasts, in order: `kubernetes PATCH /api/v1/…`. */
  writesDuring(work: () => Promise<void>): Promise<readonly string[]>;
  /**
   * Kills the operator (SIGKILL) right after the first write that `isIt` says yes to, with that write's answer lost.
   * `done` is true when it is dead, false when it was called off.
   */
  killAt(isIt: (write: string, index: number) => boolean): {
    readonly done: Promise<boolean>;
    cancel(): void;
  };
  close(): Promise<void>;
}

export async function aKillWorld(options: WorldOptions): Promise<KillWorld> {
  const cluster = await sharedCluster();
  let proxies: readonly { readonly where: string; readonly proxy: FaultProxy }[] = [];
  const s3: S3Server = await startS3(BUCKET);

  async function throughProxies(base: OperatorProcessOptions): Promise<Partial<OperatorProcessOptions>> {
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

  const world = await aWorld(cluster, { ...options, operator: throughProxies });
  await world.operator.waitReady();
  return {
    world,
    async writesDuring(work) {
      const seen: string[] = [];
      const rules = proxies.map(({ where, proxy }) =>
        proxy.rule({
          match: (request) => {
            if (concernsARun(where, request)) seen.push(`${where} ${request.method} ${request.path}`);
            return false;
          },
          fault: { kind: 'Drop' },
        }),
      );
      await work();
      for (const rule of rules) rule.remove();
      return seen;
    },
    killAt(isIt) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      let count = 0;
      let killed = false;
      const victim = world.operator;
      const rules = proxies.map(({ where, proxy }) =>
        proxy.rule({
          match: (request) => {
            if (killed || !concernsARun(where, request)) return false;
            killed = isIt(`${where} ${request.method} ${request.path}`, count);
            count += 1;
            if (killed) void victim.stop('SIGKILL').then(() => resolve(true));
            return killed;
          },
          fault: { kind: 'LoseAnswer' },
        }),
      );
      const cancel = () => {
        for (const rule of rules) rule.remove();
        resolve(false);
      };
      return { done: promise, cancel };
    },
    async close() {
      await world.close();
      await Promise.all([s3.stop(), ...proxies.map(({ proxy }) => proxy.close())]);
    },
  };
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A request of the operator that changes something for one run, or starts something in its sandbox. */
function concernsARun(where: string, { method, path, kind }: SeenRequest): boolean {
  if (where === 'kubernetes') {
    if (kind === 'upgrade') return true;
    if (!/\/(agentruns|agentsessions|pods)\//.test(path))
      return method === 'POST' && /\/agentsessions$/.test(path);
    return method !== 'GET';
  }
  return method === 'POST' || method === 'PUT' || method === 'DELETE';
}
