import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/kube/client.ts';
import { createInformer, type Informer, type InformerOptions } from '../../src/kube/informer.ts';
import { CONFIG_MAP, type ConfigMap } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { type SeenRequest, startFaultProxy } from '../faults/proxy.ts';
import { eventually, type Plane, startPlane, transportTo } from './plane.ts';

/** The promise of every test here: a change is seen within this, mostly in a second or two … */
const SEEN_WITHIN_MS = 60_000;
/** … and no second sees more list and watch requests of the kind than this. */
const MOST_PER_SECOND = 5;

let plane: Plane;

beforeAll(async () => {
  plane = await startPlane();
}, 300_000);

afterAll(async () => {
  await plane?.close();
}, 300_000);

const ofConfigMaps = (request: SeenRequest) =>
  request.method === 'GET' && request.path.endsWith('/configmaps');
const watches = (request: SeenRequest) => ofConfigMaps(request) && request.kind === 'watch';
const lists = (request: SeenRequest) => ofConfigMaps(request) && request.kind !== 'watch';

/** A namespace, a faulty path to the API server and informers on it, for one test. */
async function aStage() {
  const scratch = mkdtempSync(join(tmpdir(), 'informer-'));
  const namespace = await plane.namespace();
  const proxy = await startFaultProxy({ target: plane.server, targetCa: plane.ca });
  proxy.writeKubeconfig(join(scratch, 'kubeconfig'), plane.token);
  const through = transportTo(join(scratch, 'kubeconfig'));
  rmSync(scratch, { recursive: true, force: true });
  const informers: Informer<ConfigMap>[] = [];
  const aConfigMap = (name: string, value = 'one'): ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name },
    data: { value },
  });
  return {
    namespace,
    proxy,
    through,
    aConfigMap,
    async aSyncedInformer(options: Partial<InformerOptions<ConfigMap>> = {}): Promise<Informer<ConfigMap>> {
      const informer = createInformer({ transport: through, kind: CONFIG_MAP, namespace, ...options });
      informers.push(informer);
      informer.start();
      await informer.waitForSync(AbortSignal.timeout(60_000));
      await eventually('a watch is open', () => proxy.seen.some(watches));
      return informer;
    },
    /** Creates it behind the proxy's back. */
    make: (name: string, value?: string) => plane.client.create(CONFIG_MAP, aConfigMap(name, value)),
    isSeen: (informer: Informer<ConfigMap>, name: string) =>
      eventually(`${name} is seen`, () => informer.get(`${namespace}/${name}`) !== undefined, SEEN_WITHIN_MS),
    expectNoStorm: () => expect(proxy.peakPerSecond(ofConfigMaps)).toBeLessThanOrEqual(MOST_PER_SECOND),
    async end() {
      await Promise.all(informers.map((informer) => informer.stop()));
      await through.close();
      // What stop and close promise: nothing of us is left on the wire.
      await eventually('all connections closed', () => proxy.openConnections === 0);
      await proxy.close();
    },
  };
}

const staged = test.extend<{ stage: Awaited<ReturnType<typeof aStage>> }>({
  stage: async ({ task: _ }, use) => {
    const stage = await aStage();
    await use(stage);
    await stage.end();
  },
});

staged(
  'what is created, changed and deleted is told in order, and the copy is equal to the server',
  async ({ stage }) => {
    await stage.make('before');
    const informer = await stage.aSyncedInformer();
    const told: string[] = [];
    informer.subscribe((change) => void told.push(`${change.type} ${change.key}`));
    const made = await stage.make('during');
    await plane.client.replace(CONFIG_MAP, { ...made, data: { value: 'two' } });
    await eventually(
      'the change is seen',
      () => informer.get(`${stage.namespace}/during`)?.data?.['value'] === 'two',
    );
    await plane.client.delete(CONFIG_MAP, { namespace: stage.namespace, name: 'during' });
    await eventually('the deletion is seen', () => informer.get(`${stage.namespace}/during`) === undefined);
    expect(told).toEqual([
      `Added ${stage.namespace}/before`,
      `Added ${stage.namespace}/during`,
      `Modified ${stage.namespace}/during`,
      `Deleted ${stage.namespace}/during`,
    ]);
    expect(informer.list().map((object) => object.metadata.name)).toEqual(['before']);
  },
);

staged(
  'an object of the same name made again is a new one, its predecessor is not mixed up with it',
  async ({ stage }) => {
    const informer = await stage.aSyncedInformer();
    const first = await stage.make('again');
    await plane.client.delete(CONFIG_MAP, { namespace: stage.namespace, name: 'again' });
    const second = await stage.make('again', 'two');
    await eventually(
      'the second is seen',
      () => informer.get(`${stage.namespace}/again`)?.metadata.uid === second.metadata.uid,
    );
    expect(first.metadata.uid).not.toBe(second.metadata.uid);
  },
);

staged(
  'a label selector is kept, and an object that loses the label is told as deleted',
  async ({ stage }) => {
    const informer = await stage.aSyncedInformer({ labelSelector: 'wanted=yes' });
    await stage.make('unlabelled');
    await plane.client.create(CONFIG_MAP, {
      ...stage.aConfigMap('labelled'),
      metadata: { namespace: stage.namespace, name: 'labelled', labels: { wanted: 'yes' } },
    });
    await stage.isSeen(informer, 'labelled');
    expect(informer.get(`${stage.namespace}/unlabelled`)).toBeUndefined();
    await plane.client.patch(
      CONFIG_MAP,
      { namespace: stage.namespace, name: 'labelled' },
      { type: 'merge', body: { metadata: { labels: { wanted: 'no' } } } },
    );
    await eventually('it is gone', () => informer.get(`${stage.namespace}/labelled`) === undefined);
  },
);

staged(
  'lists of more than one page are complete',
  async ({ stage }) => {
    const client = createClient(plane.transport);
    for (let from = 0; from < 620; from += 62) {
      await Promise.all(
        Array.from({ length: 62 }, (_, i) => client.create(CONFIG_MAP, stage.aConfigMap(`many-${from + i}`))),
      );
    }
    const informer = await stage.aSyncedInformer();
    expect(informer.list()).toHaveLength(620);
    expect(stage.proxy.seen.filter(lists)).toHaveLength(2);
  },
  300_000,
);

staged(
  'watches follow each other without listing again while all is well',
  async ({ stage }) => {
    const informer = await stage.aSyncedInformer({ watchSeconds: 2 });
    await eventually('the third watch is open', () => stage.proxy.seen.filter(watches).length >= 3);
    await stage.make('late');
    await stage.isSeen(informer, 'late');
    expect(stage.proxy.seen.filter(lists)).toHaveLength(1);
    stage.expectNoStorm();
  },
  300_000,
);

describe('a change made meanwhile is seen within 60 s and there is no storm, one at a time', () => {
  staged(
    'API server killed and started again in the middle of a watch',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer();
      await plane.control.killApiserver();
      const second = await plane.control.startSecondApiserver();
      try {
        const other = transportTo(second.kubeconfigPath);
        await createClient(other).create(CONFIG_MAP, stage.aConfigMap('while-away'));
        await other.close();
      } finally {
        await second.kill();
      }
      expect(informer.get(`${stage.namespace}/while-away`)).toBeUndefined();
      await plane.control.startApiserver();
      await stage.isSeen(informer, 'while-away');
      await stage.make('after');
      await stage.isSeen(informer, 'after');
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'etcd compacted under the watch: the server answers 410 for real',
    async ({ stage }) => {
      const reasons: unknown[] = [];
      const warn = (fields: object) => void reasons.push('reason' in fields ? fields.reason : fields);
      // The held watch must outlive the restart of the API server.
      const timing = { watchSeconds: 2, watchGraceMs: 60_000 };
      const informer = await stage.aSyncedInformer({ ...timing, logger: { ...silentLogger, warn } });
      const hold = stage.proxy.rule({ match: watches, fault: { kind: 'Hold' } });
      await eventually('the next watch is held', () => hold.hits > 0);
      const gone = await stage.make('deleted-before-compaction');
      await stage.make('while-held');
      await plane.client.delete(CONFIG_MAP, { namespace: stage.namespace, name: gone.metadata.name! });
      await plane.control.compactEtcd();
      // The API server's own memory of recent versions goes with it.
      await plane.control.killApiserver();
      await plane.control.startApiserver();
      const listsBefore = stage.proxy.seen.filter(lists).length;
      hold.remove();
      await stage.isSeen(informer, 'while-held');
      expect(reasons).toContain('Expired');
      expect(stage.proxy.seen.filter(lists).length).toBeGreaterThan(listsBefore);
      expect(informer.get(`${stage.namespace}/deleted-before-compaction`)).toBeUndefined();
      stage.expectNoStorm();
    },
    300_000,
  );
});

describe.concurrent('a change made meanwhile is seen within 60 s and there is no storm', () => {
  staged(
    'API server refuses connections for 20 s (BR-35 c)',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer();
      stage.proxy.refuse(true);
      stage.proxy.dropAll();
      await stage.make('while-refused');
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      expect(informer.get(`${stage.namespace}/while-refused`)).toBeUndefined();
      expect(informer.stalenessMs()).toBeGreaterThan(15_000);
      stage.proxy.refuse(false);
      await stage.isSeen(informer, 'while-refused');
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'an ERROR event with 410 in the middle of the stream (BR-35 b)',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer({ watchSeconds: 2 });
      const status = {
        kind: 'Status',
        code: 410,
        reason: 'Expired',
        message: 'too old resource version: 1 (2)',
      };
      const rule = stage.proxy.rule({
        match: watches,
        fault: {
          kind: 'Answer',
          status: 200,
          body: `${JSON.stringify({ type: 'ERROR', object: status })}\n`,
        },
        times: 3,
      });
      await eventually('410 was answered three times', () => rule.hits === 3);
      await stage.make('after-410');
      await stage.isSeen(informer, 'after-410');
      expect(stage.proxy.seen.filter(lists).length).toBeGreaterThanOrEqual(4);
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'a watch that falls silent without a word (BR-35 a)',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer();
      stage.proxy.freeze();
      await stage.make('while-silent');
      await stage.isSeen(informer, 'while-silent');
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'nothing but silence on all connections of several informers at once',
    async ({ stage }) => {
      const all = [
        await stage.aSyncedInformer(),
        await stage.aSyncedInformer(),
        await stage.aSyncedInformer(),
      ];
      stage.proxy.freeze();
      await stage.make('while-silent');
      await Promise.all(all.map((informer) => stage.isSeen(informer, 'while-silent')));
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'every list and watch answered 500 for a while',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer();
      const rule = stage.proxy.rule({
        match: ofConfigMaps,
        fault: { kind: 'Answer', status: 500, body: 'oops' },
      });
      stage.proxy.dropAll();
      await stage.make('while-500');
      await eventually('it was tried several times', () => rule.hits >= 4);
      expect(informer.get(`${stage.namespace}/while-500`)).toBeUndefined();
      rule.remove();
      await stage.isSeen(informer, 'while-500');
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    '429 with Retry-After is waited for',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer({ watchSeconds: 2 });
      const rule = stage.proxy.rule({
        match: ofConfigMaps,
        fault: { kind: 'Answer', status: 429, headers: { 'retry-after': '2' } },
        times: 2,
      });
      await eventually('429 was answered twice', () => rule.hits === 2);
      await stage.make('after-429');
      await stage.isSeen(informer, 'after-429');
      const refused = stage.proxy.seen.filter(ofConfigMaps).slice(-4);
      expect(refused[2]!.atMs - refused[1]!.atMs).toBeGreaterThan(1_900);
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'watches that are answered with nothing, at once, again and again',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer({ watchSeconds: 1 });
      const rule = stage.proxy.rule({ match: watches, fault: { kind: 'Answer', status: 200 } });
      await eventually('it happened five times', () => rule.hits >= 5);
      stage.expectNoStorm();
      await stage.make('after-nothing');
      rule.remove();
      await stage.isSeen(informer, 'after-nothing');
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'one list from the past is not believed, and the third in a row is: then the history went back',
    async ({ stage }) => {
      await stage.make('there');
      const informer = await stage.aSyncedInformer({ watchSeconds: 1 });
      const told: string[] = [];
      informer.subscribe((change) => void told.push(change.type));
      const past = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] };
      const old = (times: number) =>
        stage.proxy.rule({
          match: lists,
          fault: { kind: 'Answer', status: 200, body: JSON.stringify(past) },
          times,
        });
      const gone = () =>
        stage.proxy.rule({ match: watches, fault: { kind: 'Answer', status: 410 }, times: 1 });
      const twice = old(2);
      gone();
      await eventually('the past was listed twice', () => twice.hits === 2);
      await stage.make('after-past');
      await stage.isSeen(informer, 'after-past');
      expect(told).toEqual(['Added', 'Added']);
      const thrice = old(3);
      gone();
      await eventually('the past was listed three times', () => thrice.hits === 3);
      await eventually(
        'the cache followed, there and back again',
        () => told.join() === 'Added,Added,Deleted,Deleted,Added,Added',
      );
      stage.expectNoStorm();
    },
    300_000,
  );

  staged(
    'watches cut in the middle of a line, or full of rubbish',
    async ({ stage }) => {
      const informer = await stage.aSyncedInformer({ watchSeconds: 1 });
      const bodies = [
        '{"type":"ADDED","object":{"metada',
        'not json\n',
        '[]\n',
        '{"type":"ADDED","object":7}\n',
        '<html>',
      ];
      for (const body of bodies)
        stage.proxy.rule({ match: watches, fault: { kind: 'Answer', status: 200, body }, times: 1 });
      await eventually(
        'all were answered',
        () => stage.proxy.seen.filter(watches).length > bodies.length + 1,
        120_000,
      );
      await stage.make('after-rubbish');
      await stage.isSeen(informer, 'after-rubbish');
      stage.expectNoStorm();
    },
    300_000,
  );
});

staged('a handler that throws or rejects stops nothing', async ({ stage }) => {
  const informer = await stage.aSyncedInformer();
  const told: string[] = [];
  informer.subscribe(() => {
    throw new Error('thrown');
  });
  informer.subscribe(() => Promise.reject(new Error('rejected')));
  informer.subscribe((change) => void told.push(change.key));
  await stage.make('one');
  await stage.make('two');
  await eventually('both are told', () => told.length === 2);
  expect(told).toEqual([`${stage.namespace}/one`, `${stage.namespace}/two`]);
});

staged(
  'stop at any moment of the start leaves no open watch and tells nothing more',
  async ({ stage }) => {
    await stage.make('there');
    for (let delayMs = 0; delayMs < 60; delayMs += 4) {
      const informer = createInformer({
        transport: stage.through,
        kind: CONFIG_MAP,
        namespace: stage.namespace,
      });
      let stopped = false;
      let toldAfterStop = 0;
      informer.subscribe(() => {
        if (stopped) toldAfterStop += 1;
      });
      informer.start();
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      stopped = true;
      await informer.stop();
      expect(toldAfterStop).toBe(0);
    }
    const before = stage.proxy.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(stage.proxy.seen.length).toBe(before);
    // afterEach: no connection is left.
  },
  300_000,
);

staged(
  'waiting for the sync of an informer that cannot sync ends with the signal, or with stop',
  async ({ stage }) => {
    stage.proxy.refuse(true);
    const informer = createInformer({
      transport: stage.through,
      kind: CONFIG_MAP,
      namespace: stage.namespace,
    });
    informer.start();
    await expect(informer.waitForSync(AbortSignal.timeout(300))).rejects.toThrow(/timeout/i);
    const waiting = informer.waitForSync();
    await informer.stop();
    await expect(waiting).rejects.toThrow('was stopped');
  },
);

staged(
  'a resync lists again and tells every object again',
  async ({ stage }) => {
    await stage.make('there');
    const informer = await stage.aSyncedInformer({ watchSeconds: 1, resyncMs: 1_500 });
    const told: string[] = [];
    informer.subscribe((change) => void told.push(change.type));
    await eventually('the object is told again', () => told.includes('Resync'));
  },
  300_000,
);
