import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reapOnce } from '../../src/controllers/pool/reap.ts';
import { AGENT_SESSIONS } from '../../src/crds/agent-session.ts';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { POD, type Pod } from '../../src/kube/kinds.ts';
import { unique } from '../builders/kube-access.ts';
import { type PoolWorld, poolWorld, until } from '../builders/pool.ts';
import { aSession } from '../builders/session.ts';
import { kubectl } from '../crds/kubectl.ts';

let world: PoolWorld;
beforeAll(async () => {
  world = await poolWorld();
});
afterAll(() => world?.close());

const namespace = () => world.namespaces.sandboxes;
const podsOf = (pool: string): readonly Pod[] =>
  world.pods.list(
    ({ metadata }) => metadata.labels?.[LABELS.pool] === pool && metadata.deletionTimestamp === undefined,
  );
const standby = (pool: string): readonly Pod[] =>
  podsOf(pool).filter(({ metadata }) => metadata.labels?.[LABELS.role] === 'standby');
const isThere = async (name: string): Promise<boolean> =>
  (await world.kube.get(POD, { namespace: namespace(), name }))?.metadata.deletionTimestamp === undefined &&
  (await world.kube.get(POD, { namespace: namespace(), name })) !== undefined;

/** The kubelet ends it by itself, as it does in an eviction; a status written by hand would be overwritten. */
const end = (name: string) =>
  kubectl([
    ...['patch', `pod/${name}`, '-n', namespace(), '--type=merge'],
    ...['-p', '{"spec":{"activeDeadlineSeconds":1}}'],
  ]).catch(() => undefined);

async function events(of: string): Promise<readonly string[]> {
  const text = await kubectl([
    ...['get', 'events', '-n', namespace(), '--field-selector', `involvedObject.name=${of}`],
    ...['-o', 'jsonpath={range .items[*]}{.reason}{"\\n"}{end}'],
  ]);
  return text.split('\n').filter((reason) => reason !== '');
}

/** A standby pod that now lingers for a session of the test's own. */
async function lingering(
  pool: string,
  options: { readonly seconds: number; readonly session?: boolean },
): Promise<{ readonly name: string; readonly session: string }> {
  const session = unique('session');
  const { agents } = world.namespaces;
  if (options.session ?? true) {
    const { apiVersion, kind, spec } = aSession();
    await world.kube.create(AGENT_SESSIONS, {
      apiVersion,
      kind,
      spec,
      metadata: { name: session, namespace: agents },
    });
  }
  const taken = await until('one is taken', async () => {
    const pod = standby(pool).find(({ status }) => status?.phase === 'Running');
    if (pod === undefined) return undefined;
    const { name = '', uid, resourceVersion } = pod.metadata;
    const metadata = {
      ...{ uid, resourceVersion, ownerReferences: null },
      labels: { [LABELS.role]: 'active', [LABELS.session]: session },
      annotations: {
        [ANNOTATIONS.sessionId]: session,
        [ANNOTATIONS.runName]: `${agents}/some-run`,
        [ANNOTATIONS.reapBy]: new Date(Date.now() + options.seconds * 1000).toISOString(),
      },
    };
    const patch = { type: 'merge', body: { metadata } } as const;
    return world.kube.patch(POD, { namespace: namespace(), name }, patch).catch(() => undefined);
  });
  return { name: taken.metadata.name ?? '', session };
}

const pass = () => reapOnce({ kube: world.kube, events: world.events, namespaces: [namespace()] });

describe('standby pods that end by themselves', () => {
  it('one is replaced at once; while all of them end, they are replaced with growing pauses, not in a hot loop', async () => {
    await world.filledPool('broken', 2);
    const first = standby('broken')[0]?.metadata.name ?? '';
    await end(first);
    await until('it was replaced', async () => {
      const status = (await world.pool('broken'))?.status;
      return status?.setback?.pod === first && status.ready === 2;
    });
    expect((await world.pool('broken'))?.status?.setback).toMatchObject({ failures: 1, held: 0 });

    // From now on each pod of the pool is ended as soon as it is there.
    const seen = new Set<string>();
    const told = await until(
      'the pause is the second one',
      async () => {
        for (const { metadata } of standby('broken')) {
          if (seen.has(metadata.uid ?? '')) continue;
          seen.add(metadata.uid ?? '');
          await end(metadata.name ?? '');
        }
        const status = (await world.pool('broken'))?.status;
        return (status?.setback?.failures ?? 0) >= 3 && (status?.setback?.held ?? 0) > 0 && status;
      },
      200_000,
    );
    const { setback } = told;
    expect(setback).toMatchObject({ reason: 'DeadlineExceeded', pod: expect.stringMatching(/^broken-/) });
    expect(told.conditions?.find(({ type }) => type === 'Progressing')).toMatchObject({
      status: 'False',
      reason: 'DeadlineExceeded',
      message: expect.stringMatching(/pod broken-\S+ ended by itself: .*not replaced before/),
    });
    // Three rounds of two, and what a ReplicaSet makes before it is told that it should not.
    expect(seen.size).toBeLessThan(20);
    await world.events.flush();
    expect(await events('broken')).toEqual(expect.arrayContaining(['PoolReady', 'SandboxBroken']));
    // When it mends, the pool is full again after the pause.
    await until('it is full', async () => (await world.pool('broken'))?.status?.ready === 2, 120_000);
    await kubectl(['delete', 'sandboxpool/broken', '-n', namespace(), '--wait=false']);
  }, 400_000);
});

describe('sandboxes that linger', () => {
  beforeAll(() => world.filledPool('kept', 2));

  it('are two at most: the oldest goes when a third one comes, and a reply that takes it is faster or has none', async () => {
    const old = await lingering('kept', { seconds: 100 });
    const middle = await lingering('kept', { seconds: 200 });
    await until('both are counted', async () => (await world.pool('kept'))?.status?.lingering === 2);
    const young = await lingering('kept', { seconds: 300 });
    await until('the oldest is gone', async () => !(await isThere(old.name)));
    await until('two are left', async () => (await world.pool('kept'))?.status?.lingering === 2);
    expect(await isThere(middle.name)).toBe(true);
    expect(await isThere(young.name)).toBe(true);
    await world.events.flush();
    expect(await events('kept')).toContain('SandboxEvicted');
    for (const { name } of [middle, young]) await world.kube.delete(POD, { namespace: namespace(), name });
    await until('none lingers', async () => (await world.pool('kept'))?.status?.lingering === 0);
  });

  it('go at their time, with their session, or with their pool, by the reaper alone', async () => {
    const over = await lingering('kept', { seconds: 0 });
    await until('it is reaped', async () => (await pass()).includes(over.name));
    const orphan = await lingering('kept', { seconds: 300, session: false });
    const deleted = await lingering('kept', { seconds: 300 });
    await kubectl(['delete', 'agentsession', deleted.session, '-n', world.namespaces.agents]);
    const reaped = new Set<string>();
    await until('both are reaped', async () => {
      for (const name of await pass()) reaped.add(name);
      return [orphan, deleted].every(({ name }) => reaped.has(name));
    });
    await world.filledPool('short', 1);
    const left = await lingering('short', { seconds: 300 });
    await kubectl(['delete', 'sandboxpool/short', '-n', namespace()]);
    await until('nobody keeps it', async () => (await pass()).includes(left.name));
  });

  it('stay when their time was moved between the reaper’s look and its deletion', async () => {
    const late = await lingering('kept', { seconds: 0 });
    const ref = { namespace: namespace(), name: late.name };
    const kube = {
      ...world.kube,
      // A reply takes it in that moment.
      async delete(...args: Parameters<typeof world.kube.delete>) {
        if (args[1].name === late.name)
          await world.kube.patch(POD, ref, {
            type: 'merge',
            body: {
              metadata: { labels: { [LABELS.run]: 'reply' }, annotations: { [ANNOTATIONS.sessionId]: null } },
            },
          });
        return world.kube.delete(...args);
      },
    };
    expect(await reapOnce({ kube, events: world.events, namespaces: [namespace()] })).not.toContain(
      late.name,
    );
    expect(await isThere(late.name)).toBe(true);
    await world.kube.delete(POD, ref);
  });
});
