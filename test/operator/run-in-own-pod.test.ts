import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { run } from '../../hack/cluster/run.ts';
import type { NetworkPolicy, Pod } from '../../src/kube/kinds.ts';
import { aCliWorld, type CliWorld, PROJECT, type Running } from '../cli/world.ts';
import { createNamespace, deleteNamespace, sharedCluster } from '../cluster/shared.ts';
import type { Script } from '../fakes/openai/server.ts';

const IMAGE = 'hummingbird.test/sandbox:1';
const EVENT = JSON.stringify({ project: PROJECT, iid: 1 });

/** The command waits for a file, so that the test can look at the pod while it is in use. */
const WAITING = 'until [ -e /tmp/data/go ]; do sleep 0.2; done; echo "in the pod as $(id -u)"';
const script: Script = ({ messages }) =>
  messages.some(({ role }) => role === 'tool')
    ? { text: `Seen: ${String(messages.at(-1)?.content)}` }
    : { text: 'Noted: it waits.', toolCalls: [{ name: 'sandbox_exec', args: { command: WAITING } }] };

describe('hummingbird run --sandbox k8s', () => {
  let cluster: Cluster;
  let world: CliWorld;
  let namespace: string;
  beforeAll(async () => {
    cluster = await sharedCluster();
    namespace = await createNamespace(cluster);
    world = await aCliWorld({ 'test-script': script });
    // No namespace is named but by the context.
    const config = parse(await readFile(cluster.kubeconfigPath, 'utf8'));
    config.contexts[0].context.namespace = namespace;
    await writeFile(world.path('kubeconfig'), stringify(config));
  });
  afterAll(async () => {
    await world?.close();
    if (namespace) await deleteNamespace(cluster, namespace);
  });

  const context = async () =>
    parse(await readFile(world.path('kubeconfig'), 'utf8'))['current-context'] as string;
  const start = async (...more: string[]): Promise<Running> =>
    world.start([
      ...['run', '--event', EVENT, '--sandbox', 'k8s', '--image', IMAGE],
      ...['--kubeconfig', world.path('kubeconfig'), '--context', await context(), ...more],
    ]);
  async function listed<T>(kind: string): Promise<readonly T[]> {
    return JSON.parse(await cluster.kubectl(['get', kind, '-n', namespace, '-o', 'json'])).items;
  }
  const gone = async (): Promise<void> => {
    for (const kind of ['pods', 'networkpolicies'])
      await expect.poll(() => listed(kind), { timeout: 60_000 }).toEqual([]);
  };

  it('works in a pod of its own without network or credential, and deletes it', async () => {
    const running = await start();
    await running.sees(/sandbox: Pod hb-sandbox-[0-9a-f]{8}\n/);
    const [pod, ...others] = await listed<Pod>('pods');
    expect(others).toEqual([]);
    const { uid, labels, name = '' } = pod?.metadata ?? {};
    expect(pod?.spec).toMatchObject({
      restartPolicy: 'Never',
      activeDeadlineSeconds: 1800,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          command: ['sleep', 'infinity'],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          resources: {
            requests: { 'ephemeral-storage': '256Mi' },
            limits: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' },
          },
        },
      ],
    });
    const [policy] = await listed<NetworkPolicy>('networkpolicies');
    expect(policy?.metadata.ownerReferences).toMatchObject([{ kind: 'Pod', name, uid }]);
    expect(policy?.spec.policyTypes?.toSorted()).toEqual(['Egress', 'Ingress']);
    const selected = policy?.spec.podSelector.matchLabels ?? {};
    expect(labels).toMatchObject(selected);
    expect(Object.keys(selected)).not.toEqual([]);

    await cluster.kubectl(['exec', '-n', namespace, name, '--', 'touch', '/tmp/data/go']);
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toMatch(/showing that the pod reaches no network\n[\s\S]*sandbox: Pod /);
    expect(stdout).toMatch(/in the pod as [1-9]/);
    await gone();
  });

  it('is kubectl hummingbird run for a kubectl that finds it in its PATH', async () => {
    const bin = world.path('bin');
    await mkdir(bin);
    await symlink(fileURLToPath(new URL('../../src/main.ts', import.meta.url)), `${bin}/kubectl-hummingbird`);
    const PATH = [bin, dirname(process.execPath), process.env['PATH']].join(delimiter);
    const asked = [cluster.kubectlPath, 'hummingbird', 'run', '--help'];
    expect(await run(asked, { env: { PATH } })).toMatch(/^Usage: kubectl hummingbird run \[options\]\n/);
    expect(await run([cluster.kubectlPath, 'plugin', 'list'], { env: { PATH } })).toContain(
      `${bin}/kubectl-hummingbird`,
    );
  });

  it('after Ctrl-C has saved what is known, and deleted the pod', async () => {
    const folder = world.path('interrupted');
    const running = await start('--save-session', folder);
    await running.sees(/model: 1 tool call/);
    running.child.kill('SIGINT');
    const { code, stdout } = await running.ended;
    expect(code).toBe(130);
    expect(stdout).toContain('Noted: it waits.');
    expect(await readFile(`${folder}/transcript.md`, 'utf8')).toContain('Noted: it waits.');
    await gone();
  });

  it('says why there is no pod, and leaves none: the image is not there', async () => {
    const { code, stdout } = await (await start('--image', 'hummingbird.test/Absent:1')).ended;
    expect({ code, stdout }).toMatchObject({ code: 4, stdout: expect.stringContaining('InvalidImageName') });
    await gone();
  });

  it('says why there is no pod, and leaves none: the cluster refuses it', async () => {
    const quota = { pods: '0' };
    const object = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none' },
      spec: { hard: quota },
    };
    await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(object));
    const used = () =>
      cluster.kubectl(['get', 'quota', 'none', '-n', namespace, '-o', 'jsonpath={.status.hard.pods}']);
    await expect.poll(used, { timeout: 60_000 }).toBe('0');
    const { code, stdout } = await (await start()).ended;
    expect({ code, stdout }).toMatchObject({ code: 4, stdout: expect.stringContaining('exceeded quota') });
    await gone();
  });
});
