import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reapOnce } from '../../src/controllers/pool/reap.ts';
import { AGENT_RUNS, type AgentRun } from '../../src/crds/agent-run.ts';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD, type Pod } from '../../src/kube/kinds.ts';
import { recording, unique } from '../builders/kube-access.ts';
import { aPool, type PoolWorld, poolWorld, SANDBOX_IMAGE, until } from '../builders/pool.ts';
import { aRun } from '../builders/run.ts';
import { kubectl } from '../crds/kubectl.ts';

let world: PoolWorld;
beforeAll(async () => {
  world = await poolWorld();
});
afterAll(() => world?.close());

const condition = async (pool: string, type: string) =>
  (await world.pool(pool))?.status?.conditions?.find((candidate) => candidate.type === type);

describe('a SandboxPool', () => {
  it('has its pods Ready in a namespace that enforces Pod Security restricted, behind a policy that shuts them', async () => {
    const pool = await world.filledPool('warm', 2);
    const { sandboxes } = world.namespaces;
    expect(pool.status).toMatchObject({
      replicas: 2,
      ready: 2,
      claimed: 0,
      lingering: 0,
      selector: 'hummingbird.dev/pool=warm,hummingbird/role=standby',
    });
    await until(
      'the pool is complete',
      async () => (await condition('warm', 'Progressing'))?.reason === 'Complete',
    );
    expect((await condition('warm', 'Ready'))?.status).toBe('True');
    expect(await condition('warm', 'EgressBlocked')).toMatchObject({
      status: 'Unknown',
      reason: 'ProbeDisabled',
    });

    const policy = await world.kube.get(NETWORK_POLICY, { namespace: sandboxes, name: 'warm' });
    expect(policy?.spec).toEqual({
      podSelector: { matchLabels: { [LABELS.pool]: 'warm' } },
      policyTypes: ['Egress', 'Ingress'],
    });
    const owner = [{ kind: 'SandboxPool', name: 'warm', uid: pool.metadata.uid }];
    expect(policy?.metadata.ownerReferences).toMatchObject(owner);
    const deployment = await world.kube.get(DEPLOYMENT, { namespace: sandboxes, name: 'warm' });
    expect(deployment?.metadata.ownerReferences).toMatchObject(owner);
    expect(policy?.metadata.creationTimestamp && deployment?.metadata.creationTimestamp).toBeTruthy();
    expect(BigInt(policy?.metadata.resourceVersion ?? '0')).toBeLessThan(
      BigInt(await firstPodVersion(sandboxes)),
    );
  });

  it('writes nothing more once it is at rest', async () => {
    const before = await world.kube.get(DEPLOYMENT, { namespace: world.namespaces.sandboxes, name: 'warm' });
    const pool = await world.pool('warm');
    world.controller.enqueue(`${world.namespaces.sandboxes}/warm`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const after = await world.kube.get(DEPLOYMENT, { namespace: world.namespaces.sandboxes, name: 'warm' });
    expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
    expect((await world.pool('warm'))?.metadata.resourceVersion).toBe(pool?.metadata.resourceVersion);
  });

  it('follows kubectl scale', async () => {
    const { sandboxes } = world.namespaces;
    await kubectl(['scale', '-n', sandboxes, 'sandboxpool/warm', '--replicas=3']);
    await until('three are ready', async () => (await world.pool('warm'))?.status?.ready === 3);
    expect(
      await kubectl([
        'get',
        '-n',
        sandboxes,
        'sandboxpool/warm',
        '--subresource=scale',
        '-o',
        'jsonpath={.status.replicas}',
      ]),
    ).toBe('3');
    await kubectl(['scale', '-n', sandboxes, 'sandboxpool/warm', '--replicas=1']);
    await until('one is left', async () => {
      const status = (await world.pool('warm'))?.status;
      return status?.ready === 1 && status.replicas === 1;
    });
  });

  it('shuts its network again when somebody opens or deletes the policy', async () => {
    const { sandboxes } = world.namespaces;
    const ref = { namespace: sandboxes, name: 'warm' };
    await kubectl([
      'patch',
      'networkpolicy/warm',
      '-n',
      sandboxes,
      '--type=merge',
      '-p',
      '{"spec":{"egress":[{}],"policyTypes":["Egress"]}}',
    ]);
    await until('it is shut again', async () => {
      const spec = (await world.kube.get(NETWORK_POLICY, ref))?.spec;
      return (spec?.egress ?? []).length === 0 && spec?.policyTypes?.length === 2;
    });
    await kubectl(['delete', 'networkpolicy/warm', '-n', sandboxes]);
    await until('it is there again', () => world.kube.get(NETWORK_POLICY, ref));
  });

  it('whose image cannot be pulled says so, with the pod and the reason', async () => {
    const { sandboxes } = world.namespaces;
    await world.kube.create(
      SANDBOX_POOLS,
      aPool('broken', sandboxes, { replicas: 1, image: 'localhost:1/none:1' }),
    );
    const ready = await until('the condition tells it', async () => {
      const found = await condition('broken', 'Ready');
      return found?.reason === 'ErrImagePull' || found?.reason === 'ImagePullBackOff' ? found : undefined;
    });
    expect(ready).toMatchObject({
      status: 'False',
      message: expect.stringMatching(/0 of 1 .*pod broken-.*localhost:1\/none:1/),
    });
    const { spec } = aPool('broken', sandboxes, { replicas: 1, image: SANDBOX_IMAGE });
    await world.kube.patch(
      SANDBOX_POOLS,
      { namespace: sandboxes, name: 'broken' },
      { type: 'merge', body: { spec: { pod: spec.pod } } },
    );
    await until(
      'a right image mends it',
      async () => (await condition('broken', 'Ready'))?.status === 'True',
    );
  });

  it('whose pods are refused says by what', async () => {
    const { sandboxes } = world.namespaces;
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace: sandboxes },
      spec: { hard: { pods: '0' } },
    };
    await kubectl(['create', '-f', '-'], quota);
    try {
      await until(
        'the quota counts',
        async () =>
          (await kubectl([
            'get',
            'resourcequota/none',
            '-n',
            sandboxes,
            '-o',
            'jsonpath={.status.hard.pods}',
          ])) === '0',
      );
      await world.kube.create(SANDBOX_POOLS, aPool('refused', sandboxes, { replicas: 1 }));
      const ready = await until('the condition tells it', async () => {
        const found = await condition('refused', 'Ready');
        return found?.reason === 'FailedCreate' ? found : undefined;
      });
      expect(ready.message).toContain('quota');
    } finally {
      await kubectl(['delete', 'resourcequota/none', '-n', sandboxes]);
      await kubectl(['delete', 'sandboxpool/refused', '-n', sandboxes]);
    }
  });

  it('does not take over a Deployment of its name that is not its own', async () => {
    const { sandboxes } = world.namespaces;
    await kubectl([
      'create',
      'deployment',
      'taken',
      '-n',
      sandboxes,
      '--image',
      SANDBOX_IMAGE,
      '--replicas=0',
    ]);
    await world.kube.create(SANDBOX_POOLS, aPool('taken', sandboxes));
    await until(
      'the condition tells it',
      async () => (await condition('taken', 'Ready'))?.reason === 'NameTaken',
    );
    expect((await world.kube.get(DEPLOYMENT, { namespace: sandboxes, name: 'taken' }))?.spec.replicas).toBe(
      0,
    );
    await kubectl(['delete', 'deployment/taken', '-n', sandboxes]);
    await until(
      'it goes on once the name is free',
      async () => (await condition('taken', 'Ready'))?.status === 'True',
    );
    await kubectl(['delete', 'sandboxpool/taken', '-n', sandboxes]);
  });

  it('removes standby pods that have ended', async () => {
    const { sandboxes } = world.namespaces;
    const [pod] = world.pods.list(
      ({ metadata }) => metadata.labels?.[LABELS.pool] === 'warm' && metadata.deletionTimestamp === undefined,
    );
    const name = pod?.metadata.name ?? '';
    // The kubelet ends it itself: a status written by hand is overwritten by the kubelet's own.
    await kubectl([
      'patch',
      `pod/${name}`,
      '-n',
      sandboxes,
      '--type=merge',
      '-p',
      '{"spec":{"activeDeadlineSeconds":1}}',
    ]);
    await until(
      'the ended one is gone',
      async () => (await world.kube.get(POD, { namespace: sandboxes, name })) === undefined,
    );
    await until('it was replaced', async () => (await world.pool('warm'))?.status?.ready === 1);
  });

  it('that is deleted takes its standby pods along and leaves claimed ones to their runs', async () => {
    const { sandboxes } = world.namespaces;
    await world.filledPool('short', 2);
    const [claimed] = world.pods.list(({ metadata }) => metadata.labels?.[LABELS.pool] === 'short');
    const name = claimed?.metadata.name ?? '';
    await claim(name, { run: 'somebody' });
    await kubectl(['delete', 'sandboxpool/short', '-n', sandboxes]);
    await until('the standby pods are gone', async () => {
      const { items } = await world.kube.list(POD, {
        namespace: sandboxes,
        labelSelector: `${LABELS.pool}=short`,
      });
      return items.length === 1 && items[0]?.metadata.name === name;
    });
    expect(await world.kube.get(NETWORK_POLICY, { namespace: sandboxes, name: 'short' })).toBeUndefined();
    await world.kube.delete(POD, { namespace: sandboxes, name });
  });
});

describe('the reaper', () => {
  const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
  const pass = () =>
    reapOnce({ kube: world.kube, events: world.events, namespaces: [world.namespaces.sandboxes] });

  beforeAll(async () => {
    await world.filledPool('reaped', 3);
  });

  it('BR-43: takes the sandbox of a run that was deleted, has ended, or has another uid now, and no other', async () => {
    const [live, gone, ended, renamed] = await Promise.all([
      createRun('live'),
      createRun('gone'),
      createRun('ended'),
      createRun('renamed'),
    ]);
    const pods = {
      live: await claimStandby(live),
      gone: await claimStandby(gone),
      ended: await claimStandby(ended),
      renamed: await claimStandby({ ...renamed, metadata: { ...renamed.metadata, uid: '0-another' } }),
      unknown: await claimStandby({ ...live, metadata: { ...live.metadata, namespace: 'does-not-exist' } }),
    };
    await world.kube.delete(AGENT_RUNS, {
      namespace: world.namespaces.agents,
      name: gone.metadata.name ?? '',
    });
    await kubectl([
      'patch',
      '-n',
      world.namespaces.agents,
      `agentrun/${ended.metadata.name}`,
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Failed"}}',
    ]);
    // A pod that its kubelet writes to in that moment is left to the next pass.
    const reaped = new Set<string>();
    await until('all are reaped', async () => {
      for (const name of await pass()) reaped.add(name);
      return reaped.size >= 4;
    });
    expect([...reaped].toSorted()).toEqual([pods.gone, pods.ended, pods.renamed, pods.unknown].toSorted());
    await until('they are gone', async () => {
      const left = await Promise.all(
        Object.values(pods).map((name) =>
          world.kube.get(POD, { namespace: world.namespaces.sandboxes, name }),
        ),
      );
      return left.filter((pod) => pod !== undefined).length === 1;
    });
    expect(await pass()).not.toContain(pods.live);
    expect(
      (await world.kube.get(POD, { namespace: world.namespaces.sandboxes, name: pods.live }))?.metadata
        .deletionTimestamp,
    ).toBeUndefined();
  });

  it('takes what is past its deadline, also of a live run', async () => {
    const name = await claimStandby(await createRun('late'), {
      reapBy: new Date(Date.now() - 1_000).toISOString(),
    });
    await until('it is reaped', async () => (await pass()).includes(name));
  });

  it('leaves a pod alone that changed since it was looked at', async () => {
    const name = await claimStandby(await createRun('busy'), {
      reapBy: new Date(Date.now() - 1_000).toISOString(),
    });
    const ref = { namespace: world.namespaces.sandboxes, name };
    const { kube } = recording(world.kube);
    const late = {
      ...kube,
      // Somebody gives the pod more time between the reaper's look and its deletion.
      async delete(...args: Parameters<typeof kube.delete>) {
        await world.kube.patch(POD, ref, {
          type: 'merge',
          body: { metadata: { annotations: { [ANNOTATIONS.reapBy]: inAnHour() } } },
        });
        return kube.delete(...args);
      },
    };
    const reaped = await reapOnce({ kube: late, events: world.events, namespaces: [ref.namespace] });
    expect(reaped).not.toContain(name);
    expect((await world.kube.get(POD, ref))?.metadata.deletionTimestamp).toBeUndefined();
  });

  async function createRun(name: string): Promise<AgentRun> {
    const { agents } = world.namespaces;
    const run = aRun({}, { metadata: { name: unique(name), namespace: agents } });
    const { spec, apiVersion, kind } = run;
    return world.kube.create(AGENT_RUNS, {
      apiVersion,
      kind,
      metadata: { name: run.metadata.name ?? '', namespace: agents },
      spec,
    });
  }

  async function claimStandby(run: AgentRun, options: { readonly reapBy?: string } = {}): Promise<string> {
    const pod = await until(
      'one stands by',
      () =>
        world.pods.list(
          ({ metadata }) => isStandby(metadata.labels) && metadata.deletionTimestamp === undefined,
        )[0],
    );
    const name = pod.metadata.name ?? '';
    await claim(name, {
      run: run.metadata.uid ?? '',
      runName: `${run.metadata.namespace}/${run.metadata.name}`,
      reapBy: options.reapBy ?? inAnHour(),
    });
    await until(
      'the cache knows',
      () => !isStandby(world.pods.get(`${world.namespaces.sandboxes}/${name}`)?.metadata.labels),
    );
    return name;
  }

  const isStandby = (labels: Readonly<Record<string, string>> | undefined) =>
    labels?.[LABELS.pool] === 'reaped' && labels[LABELS.role] === 'standby';
});

async function claim(
  name: string,
  { run, runName, reapBy }: { readonly run: string; readonly runName?: string; readonly reapBy?: string },
): Promise<Pod> {
  return world.kube.patch(
    POD,
    { namespace: world.namespaces.sandboxes, name },
    {
      type: 'merge',
      body: {
        metadata: {
          ownerReferences: null,
          labels: { [LABELS.role]: 'active', [LABELS.run]: run },
          annotations: {
            ...(runName === undefined ? {} : { [ANNOTATIONS.runName]: runName }),
            ...(reapBy === undefined ? {} : { [ANNOTATIONS.reapBy]: reapBy }),
          },
        },
      },
    },
  );
}

/** Version of the list at which the first pod could have been there at the earliest: its own, now. */
async function firstPodVersion(namespace: string): Promise<string> {
  const { items } = await world.kube.list(POD, { namespace });
  return (
    items
      .map(({ metadata }) => metadata.resourceVersion ?? '0')
      .toSorted((a, b) => Number(BigInt(a) - BigInt(b)))[0] ?? '0'
  );
}
