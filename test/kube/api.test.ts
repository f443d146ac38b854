import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { applyObject, applyStatus, updateStatus } from '../../src/kube/apply.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { KubeError } from '../../src/kube/errors.ts';
import { createEventRecorder } from '../../src/kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../src/kube/finalizers.ts';
import { CONFIG_MAP, type ConfigMap, EVENT, NAMESPACE, SECRET } from '../../src/kube/kinds.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { startFaultProxy } from '../faults/proxy.ts';
import { type Api, eventually, sharedApi, transportTo } from './plane.ts';
import { registerWidgets, WIDGET, type Widget } from './widgets.ts';

let api: Api;
let namespace: string;
let scratch: string;
/** PEM file of the API server's authority. */
let caFile: string;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'api-'));
  caFile = join(scratch, 'ca.crt');
  api = sharedApi();
  writeFileSync(caFile, api.ca);
  await registerWidgets(api.client);
});
afterAll(async () => {
  await api?.close();
  rmSync(scratch, { recursive: true });
});
beforeEach(async () => {
  namespace = await api.namespace();
});

const aConfigMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  data,
});
const aWidget = (name: string): Widget => ({
  apiVersion: 'kube.test/v1',
  kind: 'Widget',
  metadata: { namespace, name },
  spec: { size: 1 },
});

/** The KubeError that `work` rejects with. */
async function refusal(work: Promise<unknown>): Promise<KubeError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof KubeError)) throw new Error(`expected a KubeError, got ${String(error)}`);
  return error;
}

describe('refusals carry the reason, the place and what to do', () => {
  test('AlreadyExists', async () => {
    await api.client.create(CONFIG_MAP, aConfigMap('a'));
    const error = await refusal(api.client.create(CONFIG_MAP, aConfigMap('a')));
    expect(error).toMatchObject({ reason: 'AlreadyExists', status: 409, retryable: false });
    expect(error.message).toContain(`CREATE configmaps/${namespace}/a`);
  });

  test('Conflict on a stale version', async () => {
    const read = await api.client.create(CONFIG_MAP, aConfigMap('a'));
    await api.client.replace(CONFIG_MAP, { ...read, data: { a: '1' } });
    const error = await refusal(api.client.replace(CONFIG_MAP, { ...read, data: { a: '2' } }));
    expect(error).toMatchObject({ reason: 'Conflict', status: 409, retryable: false });
    expect(error.message).toContain('read the object again');
  });

  test('Invalid names the field', async () => {
    const error = await refusal(api.client.create(WIDGET, { ...aWidget('bad'), spec: { size: -1 } }));
    expect(error).toMatchObject({ reason: 'Invalid', status: 422 });
    expect(error.message).toContain('spec.size');
  });

  test('NotFound: a read is undefined, a deletion false, a patch an error', async () => {
    const ref = { namespace, name: 'none' };
    expect(await api.client.get(CONFIG_MAP, ref)).toBeUndefined();
    expect(await api.client.delete(CONFIG_MAP, ref)).toBe(false);
    expect(await refusal(api.client.patch(CONFIG_MAP, ref, { type: 'merge', body: {} }))).toMatchObject({
      reason: 'NotFound',
    });
  });

  test('Unauthorized for a wrong token, Unreachable where nobody listens', async () => {
    const wrong = createTransport(
      connect({
        kind: 'Token',
        server: api.server,
        token: 'wrong',
        caFile,
      }),
    );
    expect(await refusal(createClient(wrong).list(NAMESPACE, {}))).toMatchObject({ reason: 'Unauthorized' });
    await wrong.close();
    const nobody = createTransport(connect({ kind: 'Token', server: 'https://127.0.0.1:1', token: 'x' }));
    expect(await refusal(createClient(nobody).create(CONFIG_MAP, aConfigMap('a')))).toMatchObject({
      reason: 'Unreachable',
      retryable: true,
    });
    await nobody.close();
  });

  test('a certificate of another authority is refused before a token is sent', async () => {
    const proxy = await startFaultProxy({ target: api.server, targetCa: api.ca });
    const transport = createTransport(
      connect({
        kind: 'Token',
        server: proxy.server,
        token: api.token,
        caFile,
      }),
    );
    const error = await refusal(
      createClient(transport).create(NAMESPACE, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'x' },
      }),
    );
    expect(error.reason).toBe('Unreachable');
    expect(proxy.seen).toHaveLength(0);
    await transport.close();
    await proxy.close();
  });
});

test('preconditions: a deletion by uid spares the successor of the same name', async () => {
  const first = await api.client.create(CONFIG_MAP, aConfigMap('a'));
  await api.client.delete(CONFIG_MAP, { namespace, name: 'a' });
  await api.client.create(CONFIG_MAP, aConfigMap('a'));
  const error = await refusal(
    api.client.delete(CONFIG_MAP, { namespace, name: 'a' }, { uid: first.metadata.uid! }),
  );
  expect(error.reason).toBe('Conflict');
  expect(await api.client.get(CONFIG_MAP, { namespace, name: 'a' })).toBeDefined();
});

test('an abort ends a call with the signal its reason', async () => {
  await expect(
    api.client.list(NAMESPACE, {}, { signal: AbortSignal.abort(new Error('enough')) }),
  ).rejects.toThrow('enough');
});

describe('through a faulty network', () => {
  async function through() {
    const folder = mkdtempSync(join(tmpdir(), 'api-'));
    const proxy = await startFaultProxy({ target: api.server, targetCa: api.ca });
    proxy.writeKubeconfig(join(folder, 'kubeconfig'), api.token);
    const transport = transportTo(join(folder, 'kubeconfig'));
    rmSync(folder, { recursive: true });
    return {
      proxy,
      transport,
      client: createClient(transport),
      async [Symbol.asyncDispose]() {
        await transport.close();
        await proxy.close();
      },
    };
  }

  test.each([
    ['500', { kind: 'Answer', status: 500, body: 'no' }],
    ['429', { kind: 'Answer', status: 429, headers: { 'retry-after': '1' } }],
    ['a reset', { kind: 'Drop' }],
    ['a lost answer', { kind: 'LoseAnswer' }],
  ] as const)('a read survives %s', async (_, fault) => {
    await using setup = await through();
    const rule = setup.proxy.rule({ match: () => true, fault, times: 2 });
    expect((await setup.client.list(NAMESPACE, {})).items.length).toBeGreaterThan(0);
    expect(rule.hits).toBe(2);
  });

  test.each([
    ['500', { kind: 'Answer', status: 500 }, 'InternalError'],
    ['a reset', { kind: 'Drop' }, 'Unreachable'],
    ['a lost answer', { kind: 'LoseAnswer' }, 'Unreachable'],
  ] as const)('a write is sent once and told of %s', async (_, fault, reason) => {
    await using setup = await through();
    setup.proxy.rule({ match: (request) => request.method === 'POST', fault });
    const error = await refusal(setup.client.create(CONFIG_MAP, aConfigMap('once')));
    expect(error).toMatchObject({ reason, retryable: true });
    expect(setup.proxy.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('a server that never answers is given up, and the next call takes a new connection', async () => {
    await using setup = await through();
    const impatient = createClient(setup.transport, { timeoutMs: 500 });
    // Several, so that the pool is warm: the frozen connections are those that the next call would take.
    for (let i = 0; i < 4; i++) await impatient.list(NAMESPACE, {});
    setup.proxy.freeze();
    expect(await refusal(impatient.list(NAMESPACE, {}))).toMatchObject({
      reason: 'Timeout',
      retryable: true,
    });
    expect((await impatient.list(NAMESPACE, {})).items.length).toBeGreaterThan(0);
  });

  test('an answer over the bound is refused, not held', async () => {
    await using setup = await through();
    await setup.client.create(CONFIG_MAP, aConfigMap('big', { text: 'x'.repeat(100_000) }));
    const call = setup.transport.json({
      method: 'GET',
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      where: 'LIST',
      maxBytes: 10_000,
    });
    expect((await refusal(call)).reason).toBe('ResponseTooLarge');
  });
});

describe('status', () => {
  test('an applied status owns its fields: what is left out goes, what others set stays', async () => {
    const made = await api.client.create(WIDGET, aWidget('a'));
    const first = await applyStatus(
      api.client,
      WIDGET,
      made,
      { phase: 'One', note: 'x' },
      { fieldManager: 'first' },
    );
    const second = await applyStatus(api.client, WIDGET, first, { count: 7 }, { fieldManager: 'second' });
    const last = await applyStatus(api.client, WIDGET, second, { phase: 'Two' }, { fieldManager: 'first' });
    expect(last.status).toEqual({ phase: 'Two', count: 7 });
    expect(last.spec).toEqual({ size: 1 });
  });

  test('a status applied to an object that was replaced by one of the same name is refused', async () => {
    const first = await api.client.create(WIDGET, aWidget('a'));
    await api.client.delete(WIDGET, { namespace, name: 'a' });
    await api.client.create(WIDGET, aWidget('a'));
    const error = await refusal(
      applyStatus(api.client, WIDGET, first, { phase: 'X' }, { fieldManager: 'first' }),
    );
    expect(error.reason).toBe('Conflict');
  });

  test('of ten writers that read the same version exactly one gets through', async () => {
    const read = await api.client.create(WIDGET, aWidget('a'));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => updateStatus(api.client, WIDGET, read, { phase: `writer-${i}` })),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ reason: 'Conflict' });
    }
  });

  test('a replaced status does not touch the spec', async () => {
    const read = await api.client.create(WIDGET, aWidget('a'));
    const written = await updateStatus(api.client, WIDGET, { ...read, spec: { size: 99 } }, { phase: 'One' });
    expect(written).toMatchObject({ spec: { size: 1 }, status: { phase: 'One' } });
  });
});

test('server-side apply of an object makes it, and makes it equal again', async () => {
  const options = { fieldManager: 'test' };
  await applyObject(api.client, CONFIG_MAP, aConfigMap('a', { a: '1', b: '1' }), options);
  const again = await applyObject(api.client, CONFIG_MAP, aConfigMap('a', { a: '2' }), options);
  expect(again.data).toEqual({ a: '2' });
});

describe('finalizers', () => {
  test('are added and removed one by one', async () => {
    const made = await api.client.create(WIDGET, aWidget('a'));
    const one = await addFinalizer(api.client, WIDGET, made, 'kube.test/one');
    const two = await addFinalizer(api.client, WIDGET, one, 'kube.test/two');
    expect(two.metadata.finalizers).toEqual(['kube.test/one', 'kube.test/two']);
    expect(await addFinalizer(api.client, WIDGET, two, 'kube.test/one')).toBe(two);
    await api.client.delete(WIDGET, { namespace, name: 'a' });
    const deleting = (await api.client.get(WIDGET, { namespace, name: 'a' }))!;
    expect(deleting.metadata.deletionTimestamp).toBeDefined();
    const left = await removeFinalizer(api.client, WIDGET, deleting, 'kube.test/one');
    expect(left?.metadata.finalizers).toEqual(['kube.test/two']);
    await removeFinalizer(api.client, WIDGET, left!, 'kube.test/two');
    expect(await api.client.get(WIDGET, { namespace, name: 'a' })).toBeUndefined();
  });

  test('a stale read never drops what another controller added meanwhile', async () => {
    const made = await api.client.create(WIDGET, aWidget('a'));
    const mine = await addFinalizer(api.client, WIDGET, made, 'kube.test/mine');
    await addFinalizer(api.client, WIDGET, mine, 'kube.test/other');
    expect((await refusal(removeFinalizer(api.client, WIDGET, mine, 'kube.test/mine'))).reason).toBe(
      'Conflict',
    );
    expect((await refusal(addFinalizer(api.client, WIDGET, made, 'kube.test/third'))).reason).toBe(
      'Conflict',
    );
  });
});

describe('Events', () => {
  const eventsOf = async (name: string) =>
    (await api.client.list(EVENT, { namespace, fieldSelector: `involvedObject.name=${name}` })).items;
  const aRecorder = (client = api.client) =>
    createEventRecorder({ client, component: 'test', instance: 'replica-1' });

  test('stand at their object; equal ones are one with a count', async () => {
    const widget = await api.client.create(WIDGET, aWidget('a'));
    const recorder = aRecorder();
    recorder.record(widget, 'Normal', 'Started', 'it begins');
    for (let i = 0; i < 4; i++) recorder.record(widget, 'Warning', 'Slow', 'still waiting');
    await recorder.flush();
    recorder.record(widget, 'Warning', 'Slow', 'still waiting');
    await recorder.flush();
    const events = await eventsOf('a');
    expect(
      events
        .map(({ reason, count, type }) => ({ reason, count, type }))
        .sort((a, b) => (a.reason! < b.reason! ? 1 : -1)),
    ).toEqual([
      { reason: 'Started', count: 1, type: 'Normal' },
      { reason: 'Slow', count: 5, type: 'Warning' },
    ]);
    expect(events[0]?.involvedObject.uid).toBe(widget.metadata.uid);
  });

  test('are cut to what the API server takes, without breaking a character', async () => {
    const widget = await api.client.create(WIDGET, aWidget('a'));
    const recorder = aRecorder();
    recorder.record(widget, 'Normal', 'Long', `x${'é'.repeat(2_000)}`);
    await recorder.flush();
    const message = (await eventsOf('a'))[0]?.message ?? '';
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
    expect(message).toMatch(/^xé+…$/);
  });

  test('a flood from one object is bounded, and another object is still heard', async () => {
    const loud = await api.client.create(WIDGET, aWidget('loud'));
    const quiet = await api.client.create(WIDGET, aWidget('quiet'));
    const recorder = aRecorder();
    for (let i = 0; i < 500; i++) recorder.record(loud, 'Warning', 'Loud', `number ${i}`);
    recorder.record(quiet, 'Normal', 'Quiet', 'here');
    await recorder.flush();
    expect((await eventsOf('loud')).length).toBeLessThanOrEqual(26);
    expect(await eventsOf('quiet')).toHaveLength(1);
  });

  test('a refused write is no error for the caller', async () => {
    const recorder = aRecorder();
    recorder.record(
      { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', namespace: 'no-such-namespace' } },
      'Normal',
      'A',
      'b',
    );
    await recorder.flush();
  });

  test('an Event that the API server forgot is made again', async () => {
    const widget = await api.client.create(WIDGET, aWidget('a'));
    const recorder = aRecorder();
    recorder.record(widget, 'Normal', 'Again', 'x');
    await recorder.flush();
    const [event] = await eventsOf('a');
    await api.client.delete(EVENT, { namespace, name: event!.metadata.name! });
    recorder.record(widget, 'Normal', 'Again', 'x');
    await recorder.flush();
    await eventually('it is there', async () => (await eventsOf('a')).length === 1);
  });
});

test('secrets do not stand in errors', async () => {
  const token = 'glpat-canary-0123456789';
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name: 'Not A Name' },
    stringData: { token },
  };
  const error = await refusal(api.client.create(SECRET, secret));
  expect(error.reason).toBe('Invalid');
  expect(JSON.stringify({ ...error, message: error.message, cause: String(error.cause) })).not.toContain(
    token,
  );
  expect(error.message).not.toContain(api.token);
});
