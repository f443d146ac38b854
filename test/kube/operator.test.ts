import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ResourceEvent, ResourceEventType, type ResourceMeta } from '@dot-i/k8s-operator';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { from } from '../../src/kube/controller.ts';
import { KubeError } from '../../src/kube/errors.ts';
import { HummingbirdOperator } from '../../src/kube/operator.ts';
import { type Api, eventually, sharedApi } from './plane.ts';
import { registerWidgets, WIDGET, WIDGET_DEFINITION, type Widget } from './widgets.ts';

let api: Api;
let namespace: string;
const operators: HummingbirdOperator[] = [];

beforeAll(async () => {
  api = sharedApi();
  await registerWidgets(api.client);
});
afterAll(async () => {
  await api?.close();
});
beforeEach(async () => {
  namespace = await api.namespace();
});
afterEach(async () => {
  await Promise.all(operators.splice(0).map((operator) => operator.stop()));
});

/** A subclass as the package documents it, with its protected methods within reach of the test. */
class WidgetOperator extends HummingbirdOperator {
  readonly events: ResourceEvent[] = [];
  onEvent: (event: ResourceEvent) => Promise<void> = async () => undefined;
  readonly watched: string;

  constructor(watched: string) {
    super({ transport: api.transport, client: api.client });
    this.watched = watched;
    operators.push(this);
  }

  protected override async init(): Promise<void> {
    const record = async (event: ResourceEvent) => {
      this.events.push(event);
      await this.onEvent(event);
    };
    await this.watchResource('kube.test', 'v1', 'widgets', record, this.watched);
  }

  register = (file: string) => this.registerCustomResourceDefinition(file);
  uri = (...parts: Parameters<HummingbirdOperator['getCustomResourceApiUri']>) =>
    this.getCustomResourceApiUri(...parts);
  setStatus = (meta: ResourceMeta, status: unknown) => this.setResourceStatus(meta, status);
  patchStatus = (meta: ResourceMeta, status: unknown) => this.patchResourceStatus(meta, status);
  finalize = (event: ResourceEvent, action: (event: ResourceEvent) => Promise<void>) =>
    this.handleResourceFinalizer(event, 'kube.test/cleanup', action);
}

async function aStartedOperator(onEvent?: (operator: WidgetOperator, event: ResourceEvent) => Promise<void>) {
  const operator = new WidgetOperator(namespace);
  if (onEvent) operator.onEvent = (event) => onEvent(operator, event);
  await operator.start();
  return operator;
}

const make = (name: string) =>
  api.client.create(WIDGET, {
    apiVersion: 'kube.test/v1',
    kind: 'Widget',
    metadata: { namespace, name },
    spec: { size: 1 },
  });
const get = (name: string): Promise<Widget | undefined> => api.client.get(WIDGET, { namespace, name });
const story = (operator: WidgetOperator) => operator.events.map(({ type, meta }) => `${type} ${meta.name}`);

test('a subclass is told of what is there, added, changed and deleted', async () => {
  await make('before');
  const operator = await aStartedOperator();
  await eventually('what was there is told', () => operator.events.length === 1);
  const made = await make('during');
  await eventually('the addition is told', () => operator.events.length === 2);
  await api.client.replace(WIDGET, { ...made, spec: { size: 2 } });
  await eventually('the change is told', () => operator.events.length === 3);
  await api.client.delete(WIDGET, { namespace, name: 'during' });
  await eventually('the deletion is told', () => operator.events.length === 4);
  expect(story(operator)).toEqual(['ADDED before', 'ADDED during', 'MODIFIED during', 'DELETED during']);
  expect(operator.events[0]?.meta).toMatchObject({
    namespace,
    kind: 'Widget',
    apiVersion: 'kube.test/v1',
    id: 'widgets.kube.test/v1',
  });
});

test('a handler that throws is called again, and other objects do not wait for it', async () => {
  let failures = 0;
  const operator = await aStartedOperator(async (_, event) => {
    if (event.meta.name === 'bad' && failures < 3) {
      failures += 1;
      throw new Error('not yet');
    }
  });
  await make('bad');
  await make('good');
  await eventually(
    'it was tried four times',
    () => operator.events.filter(({ meta }) => meta.name === 'bad').length === 4,
  );
  expect(story(operator).indexOf('ADDED good')).toBeLessThan(story(operator).lastIndexOf('ADDED bad'));
});

test('a deletion whose handler throws is told again until it is handled', async () => {
  let failures = 0;
  const operator = await aStartedOperator(async (_, event) => {
    if (event.type === ResourceEventType.Deleted && failures++ < 2) throw new Error('not yet');
  });
  await make('a');
  await eventually('it is told', () => operator.events.length === 1);
  await api.client.delete(WIDGET, { namespace, name: 'a' });
  await eventually(
    'the deletion is told three times',
    () => story(operator).filter((line) => line === 'DELETED a').length === 3,
  );
});

test('the status is written, and a stale write throws instead of being lost', async () => {
  const operator = await aStartedOperator();
  await make('a');
  await eventually('it is told', () => operator.events.length === 1);
  const { meta } = operator.events[0]!;
  const first = await operator.setStatus(meta, { phase: 'One', count: 1 });
  expect((await get('a'))?.status).toEqual({ phase: 'One', count: 1 });
  await operator.patchStatus(first!, { phase: 'Two' });
  expect((await get('a'))?.status).toEqual({ phase: 'Two', count: 1 });
  await expect(operator.setStatus(meta, { phase: 'Stale' })).rejects.toMatchObject({ reason: 'Conflict' });
  await expect(operator.patchStatus(meta, { phase: 'Stale' })).rejects.toThrow(KubeError);
  expect((await get('a'))?.status).toEqual({ phase: 'Two', count: 1 });
  expect((await get('a'))?.spec).toEqual({ size: 1 });
});

test('the package finalizer logic works: added once, the action runs on deletion, then the object goes', async () => {
  const cleaned: string[] = [];
  await aStartedOperator(async (operator, event) => {
    await operator.finalize(event, async ({ meta }) => void cleaned.push(meta.name));
  });
  await make('a');
  await eventually(
    'it has the finalizer',
    async () => (await get('a'))?.metadata.finalizers?.[0] === 'kube.test/cleanup',
  );
  await api.client.delete(WIDGET, { namespace, name: 'a' });
  await eventually('it is gone', async () => (await get('a')) === undefined);
  expect(cleaned).toEqual(['a']);
});

test('a finalizer stays while its action fails, and somebody else finalizer is kept', async () => {
  let mayClean = false;
  let tries = 0;
  await aStartedOperator(async (operator, event) => {
    await operator.finalize(event, async () => {
      tries += 1;
      if (!mayClean) throw new Error('the archive is down');
    });
  });
  await api.client.create(WIDGET, {
    apiVersion: 'kube.test/v1',
    kind: 'Widget',
    metadata: { namespace, name: 'a', finalizers: ['kube.test/other'] },
    spec: { size: 1 },
  });
  await eventually('it has both', async () => (await get('a'))?.metadata.finalizers?.length === 2);
  await api.client.delete(WIDGET, { namespace, name: 'a' });
  await eventually('it was tried', () => tries >= 2);
  expect((await get('a'))?.metadata.finalizers).toEqual(['kube.test/other', 'kube.test/cleanup']);
  mayClean = true;
  await eventually(
    'only the other is left',
    async () => (await get('a'))?.metadata.finalizers?.join() === 'kube.test/other',
  );
  await api.client.patch(
    WIDGET,
    { namespace, name: 'a' },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  );
});

test('a definition is registered by server-side apply, again and again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'definition-'));
  const file = join(folder, 'crd.yaml');
  writeFileSync(file, JSON.stringify(WIDGET_DEFINITION)); // JSON is YAML
  const operator = new WidgetOperator(namespace);
  for (let i = 0; i < 2; i++) {
    expect(await operator.register(file)).toMatchObject({
      group: 'kube.test',
      plural: 'widgets',
      versions: [{ name: 'v1' }],
    });
  }
  writeFileSync(file, 'kind: Pod');
  await expect(operator.register(file)).rejects.toThrow('crd.yaml: not a CustomResourceDefinition');
  rmSync(folder, { recursive: true });
});

test('a resource that the API server does not have is named', async () => {
  class Wrong extends HummingbirdOperator {
    protected override init = () => this.watchResource('kube.test', 'v1', 'gadgets', async () => undefined);
  }
  const operator = new Wrong({ transport: api.transport, client: api.client });
  await expect(operator.start()).rejects.toThrow('no gadgets; apply their CustomResourceDefinition first');
});

test('resource URIs lead to the server', () => {
  const operator = new WidgetOperator(namespace);
  expect(operator.uri('kube.test', 'v1', 'widgets', 'ns')).toBe(
    `${api.server}/apis/kube.test/v1/namespaces/ns/widgets`,
  );
  expect(operator.uri('', 'v1', 'pods')).toBe(`${api.server}/api/v1/pods`);
});

test('controllers work by key from shared informers, and nothing runs after stop while the process lives on', async () => {
  const operator = new HummingbirdOperator({ transport: api.transport, client: api.client });
  operators.push(operator);
  const widgets = operator.informer(WIDGET, { namespace });
  expect(operator.informer(WIDGET, { namespace })).toBe(widgets);
  const running = new Set<string>();
  const seen: string[] = [];
  let overlaps = 0;
  operator.control({
    name: 'widgets',
    sources: [from(widgets)],
    async reconcile(key, signal) {
      if (running.has(key)) overlaps += 1;
      running.add(key);
      await new Promise((resolve) => setTimeout(resolve, 30));
      running.delete(key);
      if (signal.aborted) return;
      const widget = widgets.get(key);
      seen.push(`${key.split('/')[1]}=${widget?.spec.size ?? 'gone'}`);
      // Requeued once, to see that the key comes again by itself.
      return seen.filter((line) => line === 'timer=1').length === 1 ? { requeueAfterMs: 50 } : undefined;
    },
  });
  await make('timer');
  await operator.start();
  expect(operator.hasSynced).toBe(true);
  expect(operator.stalenessMs()).toBeLessThan(30_000);
  await eventually('the key comes twice', () => seen.filter((line) => line === 'timer=1').length === 2);
  const made = await make('a');
  for (let size = 2; size < 8; size++) {
    await api.client.patch(
      WIDGET,
      { namespace, name: made.metadata.name! },
      { type: 'merge', body: { spec: { size } } },
    );
  }
  await eventually('the last state is seen', () => seen.includes('a=7'));
  expect(overlaps).toBe(0);
  await api.client.delete(WIDGET, { namespace, name: 'a' });
  await eventually('the deletion is seen', () => seen.includes('a=gone'));
  await operator.stop();
  const before = seen.length;
  await make('late');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(seen.length).toBe(before);
  expect(() => operator.informer(WIDGET)).toThrow('was stopped');
});
