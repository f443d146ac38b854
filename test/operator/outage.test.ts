import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import { workflow } from '../../hack/operator/objects.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, PROJECT, type World } from './world.ts';

const ANSWER = 'The cache is not emptied.';
/** Of `BR-42`: what the model says at the end, and the argument of each of its calls. */
const LONG_ANSWER = `The answer is long.\n\n${'All lines of it count. '.repeat(136_400)}`;
const LONG_ARGUMENT = 'x'.repeat(20_000);

const conditionOf = ({ status }: AgentRun, type: string) =>
  status?.conditions?.find((condition) => condition.type === type);

describe('a run when what it reports to is away or has its limits', () => {
  let world: World;
  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      scripts: {
        'test-script': ({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? { text: ANSWER }
            : { toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo kept > /tmp/data/kept' } }] },
        'long-script': ({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? { text: LONG_ANSWER }
            : {
                toolCalls: Array.from({ length: 200 }, (_, index) => ({
                  name: 'gitlab_get_mr_details',
                  args: { iid: 1, why: `${index} ${LONG_ARGUMENT}` },
                })),
              },
      },
    });
    await world.operator.waitReady();
  });
  afterEach(() => world.gitlab.faults.clear());
  afterAll(() => world?.close());

  async function sessionOf(run: AgentRun): Promise<{ status: { workspace?: { bytes: number } } }> {
    const { agents } = world.namespaces;
    const name = run.metadata.uid ?? '';
    return JSON.parse(await world.kubectl(['get', 'agentsession', name, '-n', agents, '-o', 'json']));
  }

  it('saves the session and gives the sandbox back while GitLab is down, and tells the answer when it is back', async () => {
    const before = world.notes().length;
    world.gitlab.faults.add({ method: 'PUT', path: /notes/, status: 503, times: Number.POSITIVE_INFINITY });
    await world.startRun('gitlab-down');
    const run = await world.waitRun(
      'gitlab-down',
      'the release of its sandbox',
      (found) => conditionOf(found, 'SandboxReady')?.reason === 'Released',
    );
    expect(run.status?.completionTime).toBeUndefined();
    expect(conditionOf(run, 'NotePosted')).toMatchObject({ status: 'Unknown', reason: 'Retrying' });
    expect(conditionOf(run, 'SessionSaved')?.status).toBe('True');
    expect(await world.podsOf(run)).toEqual([]);
    expect(await world.events('gitlab-down')).toContain('NoteRetry');

    world.gitlab.faults.clear();
    const ended = await world.waitEnd('gitlab-down');
    expect(ended.status?.phase).toBe('Succeeded');
    expect(world.notes().slice(before)).toEqual([expect.stringContaining(ANSWER)]);
  }, 300_000);

  it('keeps the work directory when the operator is killed between the answer and the save', async () => {
    world.gitlab.faults.add({ method: 'PUT', path: /notes/, delayMs: 30_000 });
    await world.startRun('killed-late');
    await world.waitRun('killed-late', 'an outcome', ({ status }) => status?.outcome !== undefined);
    await world.operator.stop('SIGKILL');
    world.gitlab.faults.clear();
    await world.restart();
    const run = await world.waitEnd('killed-late');
    expect(run.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 } });
    expect((await sessionOf(run)).status.workspace?.bytes).toBeGreaterThan(0);
    expect(await world.podsOf(run)).toEqual([]);
  });

  it('tells the answer of a run whose workflow was deleted meanwhile, and gives its sandbox back', async () => {
    const before = world.notes().length;
    await apply(
      world.cluster,
      workflow(world.namespaces, {
        name: 'short-lived',
        project: PROJECT,
        model: { name: 'test-script', baseURL: world.openai.url },
      }),
    );
    world.openai.faults.push({ kind: 'Delay', ms: 3_000 });
    await world.startRun('orphaned', { workflowRef: { name: 'short-lived' } });
    await world.waitRun('orphaned', 'the loop', ({ status }) => status?.phase === 'Running');
    await world.kubectl(['delete', 'agentworkflow', 'short-lived', '-n', world.namespaces.agents]);
    const run = await world.waitEnd('orphaned');
    expect(run.status?.phase).toBe('Succeeded');
    expect(world.notes().slice(before)).toEqual([expect.stringContaining(ANSWER)]);
    expect(await world.podsOf(run)).toEqual([]);
  });

  it('BR-42: ends with a small object and a note that GitLab takes, and keeps all of a 3 MB answer in the session', async () => {
    const before = world.notes().length;
    await world.startRun('long', { model: { name: 'long-script' } });
    const run = await world.waitEnd('long');
    expect(run.status).toMatchObject({ phase: 'Succeeded', toolCalls: 200 });
    const object = await world.kubectl([
      ...['get', 'agentrun', 'long', '-n', world.namespaces.agents, '-o', 'json', '--show-managed-fields'],
    ]);
    expect(Buffer.byteLength(object)).toBeLessThan(256 * 1024);
    const added = world.notes().slice(before);
    expect(added).toHaveLength(1);
    expect(added[0]?.length).toBeLessThanOrEqual(1_000_000);
    expect(added[0]).toContain('The answer is long.');
    const context = await readFile(
      join(world.storeDir, 'sessions', run.metadata.uid ?? '', 'context.json'),
      'utf8',
    );
    expect(context).toContain(JSON.stringify(LONG_ANSWER).slice(1, -1).trim());
    expect(world.gitlab.violations).toEqual([]);
  }, 300_000);
});
