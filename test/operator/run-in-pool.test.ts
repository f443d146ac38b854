import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aCliWorld, type CliWorld, PROJECT as LOCAL_PROJECT } from '../cli/world.ts';
import { sharedCluster } from '../cluster/shared.ts';
import type { Script } from '../fakes/openai/server.ts';
import { aWorld, type World } from './world.ts';

const script: Script = ({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? { text: `Seen: ${String(messages.at(-1)?.content)}` }
    : { toolCalls: [{ name: 'sandbox_exec', args: { command: 'sleep 3; echo in the pod' } }] };

describe('beside an operator', () => {
  let world: World;
  let local: CliWorld;

  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), { replicas: 2, scripts: { 'test-script': script } });
    await world.operator.waitReady();
    local = await aCliWorld({ 'test-script': script });
  });
  afterAll(async () => {
    await local?.close();
    await world?.close();
  });

  it('a run at the command line claims a pod of the pool, and deletes it', async () => {
    const { kubeconfigPath } = world.cluster;
    const pods = () =>
      world.kubectl([
        'get',
        'pods',
        '-n',
        world.namespaces.sandboxes,
        '-l',
        'hummingbird.dev/role=active',
        '-o',
        'name',
      ]);
    const running = local.start([
      ...['run', '--event', JSON.stringify({ project: LOCAL_PROJECT, iid: 1 })],
      ...['--kubeconfig', kubeconfigPath, '--namespace', world.namespaces.sandboxes, '--pool', 'analysis'],
    ]);
    await running.sees(/sandbox: PodPool /);
    expect((await pods()).trim().split('\n')).toHaveLength(1);
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('in the pod');
    await expect.poll(pods, { timeout: 60_000 }).toBe('');
  });

  it('a run’s transcript is followed from its checkpoints to the saved one', async () => {
    await world.startRun('followed');
    await world.waitRun('followed', 'start', (run) => run.status?.phase === 'Running');
    const following = local.start([
      ...['transcript', 'followed', '--follow', '--namespace', world.namespaces.agents],
      ...['--kubeconfig', world.cluster.kubeconfigPath, '--store-dir', world.storeDir],
    ]);
    await world.waitEnd('followed');
    const { code, stdout } = await following.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^# analyze-failures on group\/app!1\n/);
    expect(stdout).toContain('in the pod');
    expect(stdout.match(/^# /gm)).toHaveLength(1);
  });

  it('a run that goes on with a session is followed below what was said before', async () => {
    await world.startRun('first');
    const { metadata } = await world.waitEnd('first');
    await world.startRun('second', { sessionRef: { name: metadata.uid }, message: 'And once more?' });
    await world.waitRun('second', 'a tool call', ({ status }) => (status?.iterations ?? 0) > 0);
    const { code, stdout } = await local.start([
      ...['transcript', 'second', '--follow', '--namespace', world.namespaces.agents],
      ...['--kubeconfig', world.cluster.kubeconfigPath, '--store-dir', world.storeDir],
    ]).ended;
    expect(code).toBe(0);
    expect(stdout.match(/^# /gm)).toHaveLength(2);
    expect(stdout.match(/And once more\?/g)).toHaveLength(1);
    expect(stdout.lastIndexOf('in the pod')).toBeGreaterThan(stdout.indexOf('And once more?'));
  });
});
