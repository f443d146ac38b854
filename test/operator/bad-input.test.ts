import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import { pool, run, workflow } from '../../hack/operator/objects.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, PROJECT, type World } from './world.ts';

const condition = (agentRun: AgentRun, type = 'Succeeded') =>
  agentRun.status?.conditions?.find((one) => one.type === type);

/** Bad input ends in a terminal phase with its own reason; an ordinary run beside it is not disturbed. */
describe('an AgentRun that cannot work', () => {
  let world: World;
  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 1,
      scripts: { 'test-script': () => ({ text: 'All is well.' }) },
    });
    await world.operator.waitReady();
    const { namespaces } = world;
    await apply(
      world.cluster,
      pool(namespaces, { name: 'no-image', image: 'hummingbird.test/does-not-exist:1', replicas: 1 }),
      workflow(namespaces, {
        name: 'no-image',
        project: PROJECT,
        model: { name: 'test-script', baseURL: world.openai.url },
        poolName: 'no-image',
        spec: { limits: { timeout: '60s' } },
      }),
      workflow(namespaces, {
        name: 'model-down',
        project: PROJECT,
        // Port 1 of this machine: nobody listens there.
        model: { name: 'test-script', baseURL: 'http://127.0.0.1:1/v1' },
        spec: { limits: { timeout: '8s' } },
      }),
      workflow(namespaces, {
        name: 'wrong-tier',
        project: PROJECT,
        model: { name: 'test-script', baseURL: world.openai.url },
        spec: { dataSources: { gitlab: { tokenSecretRef: { name: 'gitlab-action', key: 'token' } } } },
      }),
    );
  });
  afterAll(() => world?.close());

  async function endOf(
    name: string,
    options: { workflow?: string; iid?: number; project?: string; spec?: object },
  ): Promise<AgentRun> {
    const { iid = world.mergeRequest.iid, project = PROJECT } = options;
    const more = {
      ...(options.workflow && { workflow: options.workflow }),
      ...(options.spec && { spec: options.spec }),
    };
    await apply(world.cluster, run(world.namespaces, { name, project, iid, ...more }));
    return world.waitEnd(name, 90_000);
  }

  it('says that the workflow does not exist', async () => {
    const ended = await endOf('no-workflow', { workflow: 'nobody-made-this' });
    expect(ended.status?.phase).toBe('Failed');
    expect(condition(ended)).toMatchObject({
      status: 'False',
      reason: 'InvalidSpec',
      message: expect.stringContaining('nobody-made-this'),
    });
    expect(await world.events('no-workflow')).toContain('InvalidSpec');
  });

  it('says that the workflow does not serve the project', async () => {
    const ended = await endOf('other-project', { project: 'group/other' });
    expect(condition(ended)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('group/other'),
    });
  });

  it('says that GitLab has no such merge request', async () => {
    const ended = await endOf('no-such-mr', { iid: 4711 });
    expect(condition(ended)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('404'),
    });
    expect(condition(ended, 'Admitted')?.status).toBe('False');
  });

  it('says that GitLab refuses access to the merge request', async () => {
    world.gitlab.faults.add({
      method: 'GET',
      path: /merge_requests\/1$/,
      status: 403,
      body: '{"message":"403 Forbidden"}',
    });
    const ended = await endOf('forbidden', {});
    expect(condition(ended)).toMatchObject({
      reason: 'AccessDenied',
      message: expect.stringContaining('403'),
    });
  });

  it('refuses a token of another tier before anything is sent with it', async () => {
    const before = world.notes().length;
    const ended = await endOf('wrong-tier', { workflow: 'wrong-tier' });
    expect(condition(ended)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('token-tier=action'),
    });
    expect(world.notes()).toHaveLength(before);
    const state = JSON.parse(
      await world.kubectl([
        'get',
        'agentworkflow',
        'wrong-tier',
        '-n',
        world.namespaces.agents,
        '-o',
        'json',
      ]),
    );
    expect(state.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'WrongTier' }),
    );
  });

  it('says that the sandbox image cannot be pulled, also on the merge request', async () => {
    const before = world.notes().length;
    const ended = await endOf('no-image', { workflow: 'no-image' });
    expect(condition(ended)).toMatchObject({ status: 'False', reason: 'SandboxUnavailable' });
    expect(await world.events('no-image')).toContain('SandboxUnavailable');
    const added = world.notes().slice(before);
    expect(added).toHaveLength(1);
    expect(added[0]).toContain('SandboxUnavailable');
  });

  it('says that the model cannot be reached, also on the merge request, and gives the sandbox back', async () => {
    const before = world.notes().length;
    const ended = await endOf('model-down', { workflow: 'model-down' });
    expect(ended.status?.phase).toBe('Failed');
    expect(['ModelError', 'Timeout']).toContain(condition(ended)?.reason);
    expect(await world.events('model-down')).toContain('ModelRetry');
    expect(world.notes().slice(before)).toHaveLength(1);
    expect(await world.podsOf(ended)).toEqual([]);
  });

  it('leaves other runs alone, and no secret anywhere', async () => {
    const ended = await endOf('ordinary', {});
    expect(ended.status?.phase).toBe('Succeeded');
    const objects = await world.kubectl([
      'get',
      'agentruns,agentworkflows,agentsessions,events',
      '-n',
      world.namespaces.agents,
      '-o',
      'json',
    ]);
    for (const secret of Object.values(world.tokens)) {
      expect(objects).not.toContain(secret);
      expect(world.operator.log()).not.toContain(secret);
      expect(world.notes().join('\n')).not.toContain(secret);
    }
    expect(world.gitlab.violations).toEqual([]);
    expect(world.openai.refusals).toEqual([]);
  });
});
