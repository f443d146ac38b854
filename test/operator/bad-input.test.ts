import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import { pool, run, workflow } from '../../hack/operator/objects.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { ENCODINGS, filesBelow, leaks, type Sink } from '../builders/canaries.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type S3Server, startS3 } from '../fakes/s3/server.ts';
import { aWorld, PROJECT, type World } from './world.ts';

/** What lies in a bucket, with what stands in the headers beside it, and what was asked of it. */
function objectsOf({ objects, log }: S3Server): Readonly<Record<string, Sink>> {
  const bodies = [...objects].flatMap(([key, { body, headers }]) => [
    [`s3/${key}`, body] as const,
    [`s3 headers of ${key}`, JSON.stringify(headers)] as const,
  ]);
  return { ...Object.fromEntries(bodies), 's3 requests': log.join('\n') };
}

const condition = (agentRun: AgentRun, type = 'Succeeded') =>
  agentRun.status?.conditions?.find((one) => one.type === type);

/** Looks where a secret would lie in a sandbox: environment, mounts, files, the first process. */
const LOOK_AROUND =
  'env; tr "\\0" "\\n" </proc/1/environ; tr "\\0" " " </proc/1/cmdline; cat /proc/mounts; find /tmp /run /var/run /home /root -type f -size -64k -exec head -c 4096 {} + 2>/dev/null';

/** Ways to write a secret that are removed from what a tool has read; the others are looked for all the same. */
const REMOVED = ['plain', 'base64', 'base64 in the middle of more', 'base64url', 'hex', 'HEX', 'URL-encoded'];

/** Bad input ends in a terminal phase with its own reason; an ordinary run beside it is not disturbed. */
describe('an AgentRun that cannot work', () => {
  let world: World;
  /** A job whose log shows every secret of the operator. */
  let leakyJob = 0;
  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 1,
      scripts: {
        'test-script': ({ messages }) => {
          const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
          if (results.length > 0) return { text: `All is well: ${results.join(' ')}`.slice(0, 20_000) };
          return {
            toolCalls: [
              { name: 'gitlab_get_job_log', args: { project: PROJECT, job_id: leakyJob } },
              { name: 'sandbox_exec', args: { command: LOOK_AROUND } },
            ],
          };
        },
      },
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
    return world.waitEnd(name);
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

  it('leaves other runs alone, and no secret of any tier anywhere, in no encoding', async () => {
    const secrets = { ...world.tokens, marker: 'ab'.repeat(32) };
    const [pipeline] = world.project.pipelines;
    if (pipeline === undefined) throw new Error('the scene has a pipeline');
    const shown = Object.values(secrets).flatMap((secret) =>
      REMOVED.map((name) => `+ echo ${ENCODINGS[name]?.(secret)}\n`),
    );
    leakyJob = world.gitlab.state.job(pipeline, { name: 'prints-secrets', trace: shown.join('') }).id;
    // What the test itself has put there is found: the search works.
    expect(leaks({ log: shown.join('') }, secrets)).toHaveLength(Object.keys(secrets).length);

    const ended = await endOf('ordinary', {});
    expect(ended.status).toMatchObject({ phase: 'Succeeded', toolCalls: 2 });
    // The same once more with a bucket in the place of the folder.
    const s3 = await startS3('sessions');
    onTestFinished(() => s3.stop());
    await world.operator.stop();
    const second = await world.restart({ store: { bucket: 'sessions', endpoint: s3.endpoint } });
    await second.waitReady(120_000);
    expect((await endOf('ordinary-in-s3', {})).status).toMatchObject({ phase: 'Succeeded', toolCalls: 2 });
    const { agents, sandboxes } = world.namespaces;
    const objects = async (kinds: string, namespace: string) =>
      world.kubectl(['get', kinds, '-n', namespace, '-o', 'json']);
    const sinks = {
      'model requests': JSON.stringify(world.openai.requests),
      notes: world.notes().join('\n'),
      log: world.operator.log(),
      resources: await objects('agentruns,agentworkflows,agentsessions,events,leases,configmaps', agents),
      sandboxes: await objects('pods,events,sandboxpools,configmaps,secrets', sandboxes),
      ...(await filesBelow(world.storeDir)),
      ...objectsOf(s3),
    };
    for (const kept of ['sessions/', 'runs/', 's3/sessions/', 's3/runs/'])
      expect(Object.keys(sinks).filter((name) => name.startsWith(kept))).not.toEqual([]);
    expect(sinks['model requests']).toContain('PATH=');
    expect(sinks['model requests']).toContain('[redacted]');
    expect(leaks(sinks, secrets)).toEqual([]);
    expect(world.gitlab.violations).toEqual([]);
    expect(world.openai.refusals).toEqual([]);
  });
});
