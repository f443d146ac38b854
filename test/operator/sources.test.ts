import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { installKonflux } from '../../hack/demo/konflux/install.ts';
import { READER, REQUEST_ID, TESTS } from '../../hack/demo/konflux/objects.ts';
import { type KonfluxScene, konfluxScene } from '../../hack/demo/konflux/scene.ts';
import { filesBelow, leaks } from '../builders/canaries.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { KONFLUX_MODEL, konfluxScript } from '../fakes/openai/konflux-script.ts';
import { aWorld, SANDBOX_IMAGE, type World } from './world.ts';

const FAILURE = 'FAIL the cache is empty after clear\n     AssertionError: 1 !== 0\n';

describe('all data sources in one run', () => {
  let world: World;
  let konflux: KonfluxScene;
  let token: string;

  beforeAll(async () => {
    const cluster = await sharedCluster();
    world = await aWorld(cluster, { scripts: { [KONFLUX_MODEL]: konfluxScript } });
    const { gitlab, project, mergeRequest, namespaces } = world;
    const tenant = `tenant-${randomUUID().slice(0, 8)}`;
    konflux = await konfluxScene({ gitlab, project, mergeRequest, testOutput: FAILURE }, tenant);
    const dataSources = await installKonflux(cluster, {
      ...{ namespaces, konflux, sha: mergeRequest.sha, image: SANDBOX_IMAGE },
    });
    const kubeconfig: { users: { user: { token: string } }[] } = parse(
      await readFile(await cluster.kubeconfigFor(tenant, READER), 'utf8'),
    );
    token = kubeconfig.users[0]?.user.token ?? '';
    await world.operator.waitReady();
    await declare(dataSources);
  }, 300_000);
  afterAll(async () => {
    await world?.kubectl(['delete', 'namespace', konflux.namespace, '--wait=false', '--ignore-not-found']);
    await konflux?.stop();
    await world?.close();
  }, 300_000);

  const workflow = () => ['agentworkflow', 'analyze-failures', '-n', world.namespaces.agents];
  /** Resolves with the generation that this makes. */
  const patchWorkflow = (patch: object): Promise<string> =>
    world.kubectl([
      ...['patch', ...workflow(), '--type=merge', '-p', JSON.stringify(patch)],
      ...['-o', 'jsonpath={.metadata.generation}'],
    ]);
  const wait = (condition: string) =>
    world.kubectl(['wait', ...workflow(), `--for=${condition}`, '--timeout=120s']);
  /** What runs go by from then on. */
  const declare = async (dataSources: object): Promise<void> => {
    const generation = await patchWorkflow({ spec: { dataSources } });
    await wait(`jsonpath={.status.acceptedGeneration}=${generation}`);
    await wait('condition=ResolvedRefs=True');
  };

  it('leads from GitLab through Konflux to a log of Testing Farm, and the kubeconfig goes nowhere', async () => {
    await world.startRun('all-sources');
    const run = await world.waitEnd('all-sources', 180_000);
    expect(run.status?.phase, run.status?.outcome?.message).toBe('Succeeded');
    const [note = ''] = world.notes();
    expect(note).toContain('the cache is empty after clear');
    expect(note).toContain(`/pipelinerun/${TESTS}`);
    expect(note).toContain(REQUEST_ID);
    expect(note).not.toContain('Not looked at');
    // The archive has neither the TaskRun nor the pod's log: they came from the cluster.
    expect(konflux.archive.requests.map(({ status }) => status)).toContain(404);
    expect(konflux.archive.violations).toEqual([]);
    expect(konflux.farm.violations).toEqual([]);

    const metrics = await (await fetch(`${world.operator.healthUrl}/metrics`)).text();
    for (const tool of ['konflux_list_taskruns', 'konflux_get_pod_log', 'tf_get_results', 'tf_get_test_log'])
      expect(metrics).toContain(`hummingbird_source_calls_total{tool="${tool}",outcome="Ok"} 1`);
    const sinks = {
      model: JSON.stringify(world.openai.requests),
      notes: world.notes().join('\n'),
      status: JSON.stringify(run),
      log: world.operator.log(),
      gitlab: JSON.stringify(world.gitlab.requests),
      farm: konflux.farm.requests.join('\n'),
      metrics,
      ...(await filesBelow(world.storeDir)),
    };
    expect(leaks(sinks, { kubeconfig: token })).toEqual([]);
  }, 300_000);

  it('a source that is not declared is not there, for the model neither', async () => {
    await declare({ konflux: null, testingFarm: null });
    await world.startRun('gitlab-only');
    await world.waitEnd('gitlab-only', 180_000);
    // The script asks for what it knows all the same: what counts is what it is told.
    const { messages, tools = [] } = world.openai.requests.at(-1) ?? { messages: [] };
    const told = JSON.stringify([messages.filter(({ role }) => role === 'system'), tools]);
    expect(told.match(/konflux\w*|testing farm|\btf_\w+|gitlab_get_job_log/gi)).toContain(
      'gitlab_get_job_log',
    );
    expect(told.match(/konflux\w*|testing farm|\btf_\w+/gi) ?? []).toEqual([]);
  }, 300_000);

  it('a kubeconfig that cannot be used is said on the workflow, without a word of it', async () => {
    const kubeconfig = JSON.stringify({ users: [{ name: 'u', user: { token: 'canary-kubeconfig-0001' } }] });
    await world.kubectl([
      ...['patch', 'secret', 'konflux', '-n', world.namespaces.agents, '--type=merge'],
      ...['-p', JSON.stringify({ stringData: { kubeconfig } })],
    ]);
    const konfluxRef = { name: 'konflux', key: 'kubeconfig' };
    await patchWorkflow({
      spec: {
        dataSources: {
          konflux: { clusterURL: 'https://api.example.org:6443/ns/team', kubeconfigSecretRef: konfluxRef },
        },
      },
    });
    await wait('condition=ResolvedRefs=False');
    const shown = await world.kubectl(['get', ...workflow(), '-o', 'json']);
    const found: { status: { conditions: { type: string; reason: string; message: string }[] } } =
      JSON.parse(shown);
    expect(found.status.conditions.find(({ type }) => type === 'ResolvedRefs')).toMatchObject({
      reason: 'InvalidKubeconfig',
      message: expect.stringContaining('spec.dataSources.konflux: kubeconfig'),
    });
    expect(leaks({ shown, log: world.operator.log() }, { token: 'canary-kubeconfig-0001' })).toEqual([]);
  }, 300_000);
});
