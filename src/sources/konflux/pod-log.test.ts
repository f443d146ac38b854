import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  aRunObject,
  BUILD_LABEL,
  callTool,
  konfluxAt,
  NAMESPACE,
  readStream,
  SHA,
  scope,
  TEST_LABEL,
  TOKEN,
} from '../../../test/builders/konflux.ts';
import { type FakeKubeArchive, startKubeArchive } from '../../../test/fakes/kubearchive/server.ts';
import type { KeptObject } from '../../../test/fakes/kubearchive/state.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { konfluxTools } from './tools.ts';

/** The cluster: what a path is answered with; anything else is 404. test/sources has a real one. */
interface FakeCluster {
  readonly url: string;
  readonly answers: Map<string, readonly [number, string | object]>;
  readonly asked: string[];
  stop(): void;
}

const POD = `/api/v1/namespaces/${NAMESPACE}/pods/task-pod`;
const LOG = `${POD}/log?container=`;

let archive: FakeKubeArchive;
let cluster: FakeCluster;
let http: HttpClient;
beforeEach(async () => {
  [archive, cluster] = await Promise.all([startKubeArchive(), startCluster()]);
  archive.state.grant(TOKEN, NAMESPACE);
  http = createHttpClient({ limits: { retry: { attempts: 2, baseMs: 1 } } });
});
afterEach(async () => {
  expect(archive.violations).toEqual([]);
  cluster.stop();
  await Promise.all([archive.stop(), http.close()]);
});

const get = (args: Readonly<Record<string, unknown>>) =>
  callTool(konfluxTools(konfluxAt(http, cluster.url, archive.url), scope), 'konflux_get_pod_log', args);
const build = () => get({ pod: 'task-pod', container: 'step-build' });
const all = () => get({ pod: 'task-pod' });
const keepLog = (container: string, text: string) =>
  archive.state.keepLog(NAMESPACE, 'task-pod', container, text);

/** Much more than what is under way at once, and nothing that can be compressed away. */
const LONG = randomBytes(2_000_000).toString('hex');

type State = 'waiting' | 'running' | 'terminated';
function aPod({
  labels = { [BUILD_LABEL]: SHA },
  states = { 'step-build': 'terminated' },
  ...rest
}: {
  readonly labels?: Readonly<Record<string, string>>;
  readonly states?: Readonly<Record<string, State>>;
  readonly owner?: { readonly kind: string; readonly name: string; readonly uid: string };
  readonly reason?: string;
} = {}): KeptObject & object {
  const { owner, reason } = rest;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'task-pod',
      namespace: NAMESPACE,
      uid: 'uid-pod',
      labels,
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      initContainers: [{ name: 'prepare' }],
      containers: Object.keys(states).map((name) => ({ name })),
    },
    status: {
      ...(reason === undefined ? {} : { reason, message: 'The node was low on resource: memory.' }),
      containerStatuses: Object.entries(states).map(([name, state]) => ({ name, state: { [state]: {} } })),
    },
  } as KeptObject;
}
const live = (pod: object = aPod()) => cluster.answers.set(POD, [200, pod]);
const waiting = (container: string) =>
  cluster.answers.set(`${LOG}${container}`, [
    400,
    {
      kind: 'Status',
      code: 400,
      message: `container "${container}" in pod "task-pod" is waiting to start: PodInitializing`,
    },
  ]);

describe('the log of a container has three ways not to be there (BR-59)', () => {
  it('BR-59: lost, when archive and cluster have it no more', async () => {
    archive.state.keep(aPod({ reason: 'Evicted' }));
    expect(await build()).toEqual({
      kind: 'Json',
      value: {
        pod: 'task-pod',
        container: 'step-build',
        log: 'lost',
        note: 'The log of step-build is lost: its pod is gone from the cluster, and KubeArchive has none. It may have written anything. The pod ended so: Evicted: The node was low on resource: memory.',
      },
    });
  });

  it('BR-59: not started, when the archive has none and the cluster says that it waits', async () => {
    live(aPod({ states: { 'step-build': 'waiting' } }));
    waiting('step-build');
    expect(await build()).toMatchObject({
      kind: 'Json',
      value: { log: 'not started', note: 'step-build has not started yet (PodInitializing).' },
    });
  });

  it('BR-59: not started, when the cluster says 200 and nothing of a pod that has no node yet', async () => {
    const { status: _none, ...pod } = { status: undefined, ...aPod() };
    live(pod);
    cluster.answers.set(`${LOG}step-build`, [200, '']);
    expect(await build()).toMatchObject({ kind: 'Json', value: { log: 'not started' } });
    live();
    expect(await build()).toMatchObject({ kind: 'Json', value: { log: 'empty' } });
  });

  it('BR-59: empty, when the archive has it and it has 0 bytes', async () => {
    archive.state.keep(aPod());
    keepLog('step-build', '');
    expect(await build()).toMatchObject({
      kind: 'Json',
      value: { log: 'empty', note: 'step-build has written nothing (0 bytes).' },
    });
  });

  it('and a fourth where nobody can say: the archive does not answer', async () => {
    archive.state.keep(aPod());
    archive.faults.status = ({ path }) => (path.endsWith('/log') ? 503 : undefined);
    expect(await build()).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(
        /^The log of step-build could not be read \(KubeArchive: GET .* 503.*go on without/,
      ),
    });
  });

  it('also where the archive knows the place and finds no line', async () => {
    archive.state.keep(aPod());
    await withNoLines(async () => {
      expect(await build()).toMatchObject({
        value: { log: 'lost', note: expect.stringMatching(/it wrote nothing, or/) },
      });
    });
  });

  it('also where the kubelet says with status 200 that it has none', async () => {
    live();
    cluster.answers.set(`${LOG}step-build`, [200, 'unable to retrieve container logs for cri-o://0a1b']);
    expect(await build()).toMatchObject({
      value: { log: 'lost', note: expect.stringMatching(/the node has it no more/) },
    });
  });
});

async function withNoLines(use: () => Promise<void>): Promise<void> {
  const message = { message: 'no parsed logs for the json path: $.x from logs in https://logs.example' };
  const front = await startCluster();
  front.answers.set(`${LOG}step-build`, [404, message]);
  front.answers.set(POD, [200, aPod()]);
  const { url } = archive;
  Object.assign(archive, { url: front.url });
  try {
    await use();
  } finally {
    Object.assign(archive, { url });
    front.stop();
  }
}

describe('the log of a container', () => {
  it("is the archive's when it has ended", async () => {
    live();
    cluster.answers.set(`${LOG}step-build`, [200, 'only the end\n']);
    keepLog('step-build', 'the whole\n');
    expect(await readStream(await build())).toEqual({ text: 'the whole\n', incomplete: undefined });
  });

  it("is the cluster's while it runs, which has more than the archive", async () => {
    live(aPod({ states: { 'step-build': 'running' } }));
    cluster.answers.set(`${LOG}step-build`, [200, 'up to now\n']);
    keepLog('step-build', 'up to a while ago\n');
    expect((await readStream(await build())).text).toBe('up to now\n');
  });

  it("is the cluster's when the archive fails or has none", async () => {
    live();
    cluster.answers.set(`${LOG}step-build`, [200, 'of the node\n']);
    expect((await readStream(await build())).text).toBe('of the node\n');
    archive.faults.status = () => 500;
    expect((await readStream(await build())).text).toBe('of the node\n');
  });

  it('that breaks off keeps what has come, and says so', async () => {
    archive.state.keep(aPod());
    keepLog('step-build', LONG);
    archive.faults.breakOffAfter = ({ path }) => (path.endsWith('/log') ? 3_000_000 : undefined);
    const { text, incomplete } = await readStream(await build());
    expect(text.length).toBeGreaterThan(0);
    expect(LONG.startsWith(text)).toBe(true);
    expect(incomplete).toMatch(new RegExp(`^The log of step-build broke off after ${text.length} bytes`));
  });

  it('of a container that is not there names those that are', async () => {
    live();
    expect(await get({ pod: 'task-pod', container: 'step-test' })).toMatchObject({
      kind: 'Error',
      message: 'Pod task-pod has no container step-test. It has prepare, step-build.',
    });
  });
});

describe('the logs of all containers', () => {
  it('stand below their names in the order in which they ran, and those that are missing are named', async () => {
    live(aPod({ states: { 'step-a': 'terminated', 'step-b': 'terminated', 'step-c': 'waiting' } }));
    keepLog('prepare', '');
    keepLog('step-a', 'without a line end');
    cluster.answers.set(`${LOG}step-b`, [200, 'b\n']);
    waiting('step-c');
    const { text, incomplete } = await readStream(await all());
    expect(text.split('\n')).toEqual([
      '=== prepare ===',
      '[empty: prepare has written nothing (0 bytes).]',
      '=== step-a ===',
      'without a line end',
      '=== step-b ===',
      'b',
      '=== step-c ===',
      '[not started: step-c has not started yet (PodInitializing).]',
      '',
    ]);
    expect(incomplete).toBe('step-c has not started yet (PodInitializing).');
  });

  it('go on after one that breaks off', async () => {
    archive.state.keep(aPod());
    keepLog('prepare', LONG);
    keepLog('step-build', 'b\n');
    let logs = 0;
    archive.faults.breakOffAfter = ({ path }) =>
      path.endsWith('/log') && ++logs === 1 ? 3_000_000 : undefined;
    const { text, incomplete } = await readStream(await all());
    expect(text).toMatch(/^=== prepare ===\n[0-9a-f]+\n=== step-build ===\nb\n$/);
    expect(incomplete).toMatch(/prepare broke off after \d+ bytes/);
  });

  it('that are all missing are no file, but one answer for each', async () => {
    archive.state.keep(aPod());
    keepLog('prepare', '');
    expect(await all()).toMatchObject({
      kind: 'Json',
      value: {
        pod: 'task-pod',
        containers: [
          { container: 'prepare', log: 'empty' },
          { container: 'step-build', log: 'lost' },
        ],
      },
    });
  });
});

describe('a pod may be read', () => {
  const taskRun = (uid: string, labels: Readonly<Record<string, string>>, owner?: object) => {
    const { metadata, ...rest } = aRunObject('task', { kind: 'TaskRun', uid, labels });
    return {
      ...rest,
      metadata: { ...metadata, ...(owner ? { ownerReferences: [owner] } : {}) },
    } as KeptObject;
  };
  const ownedBy = (uid: string) => aPod({ labels: {}, owner: { kind: 'TaskRun', name: 'task', uid } });
  beforeEach(() => keepLog('step-build', 'log\n'));

  it.each([BUILD_LABEL, TEST_LABEL])('when it carries the commit as %s', async (label) => {
    live(aPod({ labels: { [label]: SHA } }));
    expect((await readStream(await build())).text).toBe('log\n');
  });

  it('when the TaskRun that owns it carries the commit', async () => {
    live(ownedBy('uid-task'));
    archive.state.keep(taskRun('uid-task', { [TEST_LABEL]: SHA }));
    expect((await readStream(await build())).text).toBe('log\n');
  });

  it('when the PipelineRun of its TaskRun does', async () => {
    live(ownedBy('uid-task'));
    archive.state.keep(
      taskRun('uid-task', {}, { kind: 'PipelineRun', name: 'pipeline', uid: 'uid-pipeline' }),
      aRunObject('pipeline'),
    );
    expect((await readStream(await build())).text).toBe('log\n');
  });

  it('when it is gone and a TaskRun of the commit names it, also as an earlier try', async () => {
    const status = {
      podName: 'task-pod-retry1',
      retriesStatus: [{ podName: 'task-pod', steps: [{ container: 'step-build', terminated: {} }] }],
    };
    archive.state.keep(aRunObject('task', { kind: 'TaskRun', status }));
    expect((await readStream(await all())).text).toBe('=== step-build ===\nlog\n');
  });

  it.each([
    ['it carries another commit', () => live(aPod({ labels: { [BUILD_LABEL]: 'f'.repeat(40) } }))],
    ['it carries none', () => live(aPod({ labels: {} }))],
    [
      'it is owned by another TaskRun of the same name',
      () => {
        live(ownedBy('uid-of-a-later-one'));
        archive.state.keep(taskRun('uid-task', { [BUILD_LABEL]: SHA }));
      },
    ],
  ])('and may not when %s', async (_why, prepare) => {
    prepare();
    expect(await build()).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/^Not allowed: pod task-pod, which does not belong to commit "4f0c/),
    });
    expect([...cluster.asked, ...archive.requests.map(({ path }) => path)].join()).not.toContain('/log');
  });

  it('and is not known when nobody has it', async () => {
    expect(await build()).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/^No pod task-pod, and no TaskRun/),
    });
  });

  it('and is not read while it cannot be seen whose it is', async () => {
    cluster.answers.set(POD, [500, 'down']);
    expect(await build()).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/cannot be seen: the cluster could not be asked .*500/),
    });
    expect(archive.requests.map(({ path }) => path).join()).not.toContain('/log');
  });

  it('only in the namespace of the settings', async () => {
    for (const pod of ['../../kube-system/pods/x', 'x/log?container=y&', 'X', '.', '-x', '%2e%2e'])
      expect(await get({ pod })).toMatchObject({
        kind: 'Error',
        message: expect.stringMatching(/expected the name of a pod/),
      });
    expect(await get({ pod: 'x', container: 'a&b' })).toMatchObject({
      message: expect.stringMatching(/expected the name of a container/),
    });
    expect(cluster.asked).toEqual([]);
    live();
    await readStream(await build());
    for (const path of cluster.asked) expect(path).toContain(`/namespaces/${NAMESPACE}/`);
  });
});

it('every tool has the address of the UI in its answers, and notes for the system prompt', () => {
  const access = {
    ...konfluxAt(http, cluster.url),
    address: { server: '', namespace: 'n', uiUrl: 'https://konflux-ui.apps.example.org/ns/n' },
  };
  for (const tool of konfluxTools(access, scope)) {
    expect(tool.responseMetadata).toEqual({ konflux_ui: 'https://konflux-ui.apps.example.org/ns/n' });
    expect(tool.definition.notes).toBeDefined();
  }
});

async function startCluster(): Promise<FakeCluster> {
  const answers: FakeCluster['answers'] = new Map();
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const isList = path.includes('labelSelector');
    const [status, body] =
      answers.get(path) ?? (isList ? [200, { items: [] }] : [404, { kind: 'Status', code: 404 }]);
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    asked,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
