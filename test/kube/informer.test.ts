import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClient } from '../../src/kube/client.ts';
import { createInformer, type Informer, type InformerOptions } from '../../src/kube/informer.ts';
import { CONFIG_MAP, type ConfigMap } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { type FaultProxy, type SeenRequest, startFaultProxy } from '../faults/proxy.ts';
import { eventually, type Plane, startPlane, transportTo } from './plane.ts';

/** The promise of every test here: a change is seen within this … */
const SEEN_WITHIN_MS = 10_000;
/** … and no second sees more list and watch requests of the kind than this. */
const MOST_PER_SECOND = 5;

let plane: Plane;
let proxy: FaultProxy;
let namespace: string;
let through: Transport;
let scratch: string;
const informers: Informer<ConfigMap>[] = [];

beforeAll(async () => {
  plane = await startPlane();
}, 60_000);

afterAll(async () => {
  await plane?.close();
}, 60_000);

beforeEach(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'informer-'));
  namespace = await plane.namespace();
  proxy = await startFaultProxy({ target: plane.server, targetCa: plane.ca });
  proxy.writeKubeconfig(join(scratch, 'kubeconfig'), plane.token);
  through = transportTo(join(scratch, 'kubeconfig'));
});

afterEach(async () => {
  await Promise.all(informers.splice(0).map((informer) => informer.stop()));
  await through.close();
  // What stop and close promise: nothing of us is left on the wire.
  await eventually('all connections closed', () => proxy.openConnections === 0, 5_000);
  await proxy.close();
  rmSync(scratch, { recursive: true, force: true });
});

const ofConfigMaps = (request: SeenRequest) =>
  request.method === 'GET' && request.path.endsWith('/configmaps');
const watches = (request: SeenRequest) => ofConfigMaps(request) && request.kind === 'watch';
const lists = (request: SeenRequest) => ofConfigMaps(request) && request.kind !== 'watch';

async function aSyncedInformer(
  options: Partial<InformerOptions<ConfigMap>> = {},
): Promise<Informer<ConfigMap>> {
  const informer = createInformer({ transport: through, kind: CONFIG_MAP, namespace, ...options });
  informers.push(informer);
  informer.start();
  await informer.waitForSync(AbortSignal.timeout(10_000));
  await eventually('a watch is open', () => proxy.seen.some(watches));
  return informer;
}

const aConfigMap = (name: string, value = 'one'): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  data: { value },
});

/** Creates it behind the proxy's back. */
const make = (name: string, value?: string) => plane.client.create(CONFIG_MAP, aConfigMap(name, value));

const isSeen = (informer: Informer<ConfigMap>, name: string) =>
  eventually(`${name} is seen`, () => informer.get(`${namespace}/${name}`) !== undefined, SEEN_WITHIN_MS);

function expectNoStorm(): void {
  expect(proxy.peakPerSecond(ofConfigMaps)).toBeLessThanOrEqual(MOST_PER_SECOND);
}

test('what is created, changed and deleted is told in order, and the copy is equal to the server', async () => {
  await make('before');
  const informer = await aSyncedInformer();
  const told: string[] = [];
  informer.subscribe((change) => void told.push(`${change.type} ${change.key}`));
  const made = await make('during');
  await plane.client.replace(CONFIG_MAP, { ...made, data: { value: 'two' } });
  await eventually(
    'the change is seen',
    () => informer.get(`${namespace}/during`)?.data?.['value'] === 'two',
  );
  await plane.client.delete(CONFIG_MAP, { namespace, name: 'during' });
  await eventually('the deletion is seen', () => informer.get(`${namespace}/during`) === undefined);
  expect(told).toEqual([
    `Added ${namespace}/before`,
    `Added ${namespace}/during`,
    `Modified ${namespace}/during`,
    `Deleted ${namespace}/during`,
  ]);
  expect(informer.list().map((object) => object.metadata.name)).toEqual(['before']);
});

test('an object of the same name made again is a new one, its predecessor is not mixed up with it', async () => {
  const informer = await aSyncedInformer();
  const first = await make('again');
  await plane.client.delete(CONFIG_MAP, { namespace, name: 'again' });
  const second = await make('again', 'two');
  await eventually(
    'the second is seen',
    () => informer.get(`${namespace}/again`)?.metadata.uid === second.metadata.uid,
  );
  expect(first.metadata.uid).not.toBe(second.metadata.uid);
});

test('a label selector is kept, and an object that loses the label is told as deleted', async () => {
  const informer = await aSyncedInformer({ labelSelector: 'wanted=yes' });
  await make('unlabelled');
  await plane.client.create(CONFIG_MAP, {
    ...aConfigMap('labelled'),
    metadata: { namespace, name: 'labelled', labels: { wanted: 'yes' } },
  });
  await isSeen(informer, 'labelled');
  expect(informer.get(`${namespace}/unlabelled`)).toBeUndefined();
  await plane.client.patch(
    CONFIG_MAP,
    { namespace, name: 'labelled' },
    { type: 'merge', body: { metadata: { labels: { wanted: 'no' } } } },
  );
  await eventually('it is gone', () => informer.get(`${namespace}/labelled`) === undefined);
});

test('lists of more than one page are complete', async () => {
  const client = createClient(plane.transport);
  for (let from = 0; from < 620; from += 62) {
    await Promise.all(
      Array.from({ length: 62 }, (_, i) => client.create(CONFIG_MAP, aConfigMap(`many-${from + i}`))),
    );
  }
  const informer = await aSyncedInformer();
  expect(informer.list()).toHaveLength(620);
  expect(proxy.seen.filter(lists)).toHaveLength(2);
}, 60_000);

test('watches follow each other without listing again while all is well', async () => {
  const informer = await aSyncedInformer({ watchSeconds: 2 });
  await eventually('the third watch is open', () => proxy.seen.filter(watches).length >= 3, 15_000);
  await make('late');
  await isSeen(informer, 'late');
  expect(proxy.seen.filter(lists)).toHaveLength(1);
  expectNoStorm();
}, 30_000);

describe('a change made meanwhile is seen within 10 s and there is no storm', () => {
  test('API server killed and started again in the middle of a watch', async () => {
    const informer = await aSyncedInformer();
    await plane.control.killApiserver();
    const second = await plane.control.startSecondApiserver();
    try {
      const other = transportTo(second.kubeconfigPath);
      await createClient(other).create(CONFIG_MAP, aConfigMap('while-away'));
      await other.close();
    } finally {
      await second.kill();
    }
    expect(informer.get(`${namespace}/while-away`)).toBeUndefined();
    await plane.control.startApiserver();
    await isSeen(informer, 'while-away');
    await make('after');
    await isSeen(informer, 'after');
    expectNoStorm();
  }, 120_000);

  test('API server refuses connections for 20 s', async () => {
    const informer = await aSyncedInformer();
    proxy.refuse(true);
    proxy.dropAll();
    await make('while-refused');
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    expect(informer.get(`${namespace}/while-refused`)).toBeUndefined();
    expect(informer.stalenessMs()).toBeGreaterThan(15_000);
    proxy.refuse(false);
    await isSeen(informer, 'while-refused');
    expectNoStorm();
  }, 60_000);

  test('etcd compacted under the watch: the server answers 410 for real', async () => {
    const reasons: unknown[] = [];
    const warn = (fields: object) => void reasons.push('reason' in fields ? fields.reason : fields);
    const informer = await aSyncedInformer({ watchSeconds: 2, logger: { ...silentLogger, warn } });
    const hold = proxy.rule({ match: watches, fault: { kind: 'Hold' } });
    await eventually('the next watch is held', () => hold.hits > 0);
    const gone = await make('deleted-before-compaction');
    await make('while-held');
    await plane.client.delete(CONFIG_MAP, { namespace, name: gone.metadata.name! });
    await plane.control.compactEtcd();
    // The API server's own memory of recent versions goes with it.
    await plane.control.killApiserver();
    await plane.control.startApiserver();
    const listsBefore = proxy.seen.filter(lists).length;
    hold.remove();
    await isSeen(informer, 'while-held');
    expect(reasons).toContain('Expired');
    expect(proxy.seen.filter(lists).length).toBeGreaterThan(listsBefore);
    expect(informer.get(`${namespace}/deleted-before-compaction`)).toBeUndefined();
    expectNoStorm();
  }, 120_000);

  test('an ERROR event with 410 in the middle of the stream', async () => {
    const informer = await aSyncedInformer({ watchSeconds: 2 });
    const status = {
      kind: 'Status',
      code: 410,
      reason: 'Expired',
      message: 'too old resource version: 1 (2)',
    };
    const rule = proxy.rule({
      match: watches,
      fault: { kind: 'Answer', status: 200, body: `${JSON.stringify({ type: 'ERROR', object: status })}\n` },
      times: 3,
    });
    await eventually('410 was answered three times', () => rule.hits === 3, 20_000);
    await make('after-410');
    await isSeen(informer, 'after-410');
    expect(proxy.seen.filter(lists).length).toBeGreaterThanOrEqual(4);
    expectNoStorm();
  }, 60_000);

  test('a watch that falls silent without a word', async () => {
    const informer = await aSyncedInformer();
    proxy.freeze();
    await make('while-silent');
    await isSeen(informer, 'while-silent');
    expectNoStorm();
  }, 30_000);

  test('nothing but silence on all connections of several informers at once', async () => {
    const all = [await aSyncedInformer(), await aSyncedInformer(), await aSyncedInformer()];
    proxy.freeze();
    await make('while-silent');
    await Promise.all(all.map((informer) => isSeen(informer, 'while-silent')));
    expectNoStorm();
  }, 30_000);

  test('every list and watch answered 500 for a while', async () => {
    const informer = await aSyncedInformer();
    const rule = proxy.rule({ match: ofConfigMaps, fault: { kind: 'Answer', status: 500, body: 'oops' } });
    proxy.dropAll();
    await make('while-500');
    await eventually('it was tried several times', () => rule.hits >= 4, 20_000);
    expect(informer.get(`${namespace}/while-500`)).toBeUndefined();
    rule.remove();
    await isSeen(informer, 'while-500');
    expectNoStorm();
  }, 60_000);

  test('429 with Retry-After is waited for', async () => {
    const informer = await aSyncedInformer({ watchSeconds: 2 });
    const rule = proxy.rule({
      match: ofConfigMaps,
      fault: { kind: 'Answer', status: 429, headers: { 'retry-after': '2' } },
      times: 2,
    });
    await eventually('429 was answered twice', () => rule.hits === 2, 20_000);
    await make('after-429');
    await isSeen(informer, 'after-429');
    const refused = proxy.seen.filter(ofConfigMaps).slice(-4);
    expect(refused[2]!.atMs - refused[1]!.atMs).toBeGreaterThan(1_900);
    expectNoStorm();
  }, 60_000);

  test('watches that are answered with nothing, at once, again and again', async () => {
    const informer = await aSyncedInformer({ watchSeconds: 1 });
    const rule = proxy.rule({ match: watches, fault: { kind: 'Answer', status: 200 } });
    await eventually('it happened five times', () => rule.hits >= 5, 30_000);
    expectNoStorm();
    await make('after-nothing');
    rule.remove();
    await isSeen(informer, 'after-nothing');
    expectNoStorm();
  }, 60_000);

  test('watches cut in the middle of a line, or full of rubbish', async () => {
    const informer = await aSyncedInformer({ watchSeconds: 1 });
    const bodies = [
      '{"type":"ADDED","object":{"metada',
      'not json\n',
      '[]\n',
      '{"type":"ADDED","object":7}\n',
      '<html>',
    ];
    for (const body of bodies)
      proxy.rule({ match: watches, fault: { kind: 'Answer', status: 200, body }, times: 1 });
    await eventually(
      'all were answered',
      () => proxy.seen.filter(watches).length > bodies.length + 1,
      40_000,
    );
    await make('after-rubbish');
    await isSeen(informer, 'after-rubbish');
    expectNoStorm();
  }, 60_000);
});

test('a handler that throws or rejects stops nothing', async () => {
  const informer = await aSyncedInformer();
  const told: string[] = [];
  informer.subscribe(() => {
    throw new Error('thrown');
  });
  informer.subscribe(() => Promise.reject(new Error('rejected')));
  informer.subscribe((change) => void told.push(change.key));
  await make('one');
  await make('two');
  await eventually('both are told', () => told.length === 2);
  expect(told).toEqual([`${namespace}/one`, `${namespace}/two`]);
});

test('stop at any moment of the start leaves no open watch and tells nothing more', async () => {
  await make('there');
  for (let delayMs = 0; delayMs < 60; delayMs += 4) {
    const informer = createInformer({ transport: through, kind: CONFIG_MAP, namespace });
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
  const before = proxy.seen.length;
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(proxy.seen.length).toBe(before);
  // afterEach: no connection is left.
}, 60_000);

test('waiting for the sync of an informer that cannot sync ends with the signal, or with stop', async () => {
  proxy.refuse(true);
  const informer = createInformer({ transport: through, kind: CONFIG_MAP, namespace });
  informer.start();
  await expect(informer.waitForSync(AbortSignal.timeout(300))).rejects.toThrow(/timeout/i);
  const waiting = informer.waitForSync();
  await informer.stop();
  await expect(waiting).rejects.toThrow('was stopped');
});

test('a resync lists again and tells every object again', async () => {
  await make('there');
  const informer = await aSyncedInformer({ watchSeconds: 1, resyncMs: 1_500 });
  const told: string[] = [];
  informer.subscribe((change) => void told.push(change.type));
  await eventually('the object is told again', () => told.includes('Resync'), 15_000);
}, 30_000);
