import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import { tokenSecret } from '../../hack/operator/objects.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { filesBelow, leaks } from '../builders/canaries.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { noteHook } from '../fakes/gitlab/index.ts';
import type { FakeUser } from '../fakes/gitlab/state.ts';
import { type FakeMcp, startMcp } from '../fakes/mcp/server.ts';
import { searchTool, text } from '../fakes/mcp/tools.ts';
import { publishToTopic } from '../fakes/sns-publish.ts';
import { aWorld, type World } from './world.ts';

const PROGRAM = fileURLToPath(new URL('../fakes/mcp/program.ts', import.meta.url));

/** A model that wants to publish, on an MCP server whose calls need somebody's word. */
describe('a call that needs approval', () => {
  let world: World;
  let aws: FauxqsServer;
  let topicArn: string;
  let docs: FakeMcp;
  let eve: FakeUser;

  beforeAll(async () => {
    docs = await startMcp({
      tools: [
        searchTool,
        {
          definition: {
            name: 'publish',
            description: 'Publishes a page.',
            inputSchema: { type: 'object', properties: { page: { type: 'string' } }, required: ['page'] },
          },
          run: ({ page }) => text(`published ${String(page)}`),
        },
      ],
    });
    aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
    const { queueUrl } = aws.createQueue('events', { attributes: { VisibilityTimeout: '30' } });
    topicArn = aws.createTopic('webhooks').topicArn;
    aws.subscribe({ topic: 'webhooks', queue: 'events' });
    const cluster = await sharedCluster();
    world = await aWorld(cluster, {
      workflowSpec: {
        sandbox: { none: true },
        limits: { timeout: '20m' },
        dataSources: {
          mcp: [
            {
              ...{ name: 'docs', url: docs.url, tokenSecretRef: { name: 'docs-mcp', key: 'token' } },
              ...{ allowedTools: ['search', 'publish', 'gone'], requireApproval: ['publish'] },
              approvals: [{ tool: 'search', definitionSHA256: 'a'.repeat(64) }],
            },
            { name: 'local', command: [process.execPath, PROGRAM], allowedTools: ['search'] },
          ],
        },
      },
      scripts: {
        'test-script': ({ messages }) => {
          const tool = messages.findLast(({ role }) => role === 'tool');
          if (tool !== undefined) return { text: `The server says: ${String(tool.content)}` };
          return { toolCalls: [{ name: 'docs_publish', args: { page: 'cache' } }] };
        },
      },
      operator: async ({ namespaces }) => {
        await apply(cluster, tokenSecret(namespaces.agents, 'docs-mcp', 'tool', docs.token));
        return {
          queue: { url: queueUrl, endpoint: aws.address },
          args: [`--mcp-command=${process.execPath}`],
        };
      },
    });
    eve = world.gitlab.state.user({ username: 'eve' });
    await world.operator.waitReady(120_000);
    await world.kubectl([
      ...['wait', '--for=condition=Ready', 'agentworkflow/analyze-failures'],
      ...['-n', world.namespaces.agents, '--timeout=120s'],
    ]);
  }, 300_000);
  afterAll(async () => {
    await world?.close();
    await aws?.stop();
    await docs?.stop();
  });

  async function write(body: string, author: FakeUser = world.mergeRequest.author) {
    const written = world.gitlab.state.note(world.mergeRequest, { author, body, individual: true });
    const payload = noteHook(world.gitlab.url, world.mergeRequest, written);
    await publishToTopic(aws.address, topicArn, JSON.stringify(payload), {
      source: 'gitlab',
      event_type: payload.object_kind,
    });
    return written;
  }

  const answer = ({ note, discussion }: Awaited<ReturnType<typeof write>>) =>
    world.waitUntil(`an answer to ${note.body}`, () => discussion.notes.length === 2);

  /** Starts a run and resolves with the id of its question, once its note has told it. */
  async function asked(name: string): Promise<string> {
    await world.startRun(name);
    const run = await world.waitRun(
      name,
      'a question',
      ({ status }) => status?.approvals?.[0]?.told === true,
      300_000,
    );
    expect(run.status).toMatchObject({
      phase: 'Running',
      approvals: [{ tool: 'docs_publish', arguments: '{"page":"cache"}', state: 'Waiting' }],
    });
    expect(run.status?.conditions?.[0]).toMatchObject({ type: 'Succeeded', reason: 'AwaitingApproval' });
    const id = run.status?.approvals?.[0]?.id ?? '';
    expect(noteOf(run)).toContain(`/hummingbird approve ${id}`);
    return id;
  }

  const noteOf = ({ status }: AgentRun): string | undefined =>
    world.mergeRequest.discussions.flatMap(({ notes }) => notes).find(({ id }) => id === status?.note?.noteId)
      ?.body;

  it('is made when a Developer approves it by its id, and by nobody else and nothing else', async () => {
    const before = docs.calls.length;
    const id = await asked('approved');
    const refused = await write(`/hummingbird approve ${id}`, eve);
    const other = await write('/hummingbird approve 0123456789ab');
    await answer(refused);
    await answer(other);
    expect(refused.discussion.notes[1]?.body).toContain('Developer');
    expect(other.discussion.notes[1]?.body).toContain(id);
    expect((await world.getRun('approved')).status?.approvals).toMatchObject([{ state: 'Waiting' }]);
    expect(docs.calls.length).toBe(before);

    const approval = await write(`/hummingbird approve ${id}`);
    const run = await world.waitEnd('approved', 240_000);
    expect(run.status).toMatchObject({
      phase: 'Succeeded',
      approvals: [{ id, state: 'Approved', by: `ada, note ${approval.note.id}` }],
    });
    expect(docs.calls.slice(before)).toEqual(['publish']);
    expect(noteOf(run)).toContain('published cache');
    expect(noteOf(run)).not.toContain('waits for approval');
    await answer(approval);
    expect(approval.discussion.notes[1]?.body).toContain('Approved');
    expect(world.gitlab.violations).toEqual([]);

    // What is pinned to another definition, or not there, is withheld and said.
    expect(await world.events('approved')).toEqual(
      expect.arrayContaining(['ToolWithheld', 'ApprovalRequired', 'ApprovalDecided']),
    );
    const request = world.openai.requests.at(-1);
    expect(request?.tools?.map(({ function: { name } }) => name)).toEqual(['docs_publish', 'local_search']);
    const sinks = {
      ...(await filesBelow(world.storeDir)),
      requests: JSON.stringify(world.openai.requests),
      notes: world.notes().join('\n'),
      run: JSON.stringify(run),
    };
    expect(leaks(sinks, { docs: docs.token })).toEqual([]);
    expect(docs.openSessions).toBe(0);
  }, 600_000);

  it('is refused by an annotation where nobody writes notes, and the model goes on', async () => {
    const before = docs.calls.length;
    const id = await asked('denied');
    await world.kubectl([
      ...['annotate', 'agentrun', 'denied', '-n', world.namespaces.agents],
      `approval.hummingbird.dev/${id}=deny by bob`,
    ]);
    const run = await world.waitEnd('denied', 240_000);
    expect(run.status).toMatchObject({ phase: 'Succeeded', approvals: [{ id, state: 'Denied', by: 'bob' }] });
    expect(noteOf(run)).toContain('bob denied this call of docs_publish');
    expect(docs.calls.length).toBe(before);
  }, 600_000);

  it('waits on behind another replica when its operator is killed, and is asked once', async () => {
    const before = docs.calls.length;
    const notes = world.notes().length;
    const id = await asked('taken-over');
    const killed = world.operator;
    const other = await world.restart({
      replicaId: 'operator-1',
      logFile: join(world.storeDir, 'operator-1.log'),
    });
    await other.waitReady(120_000);
    await killed.stop('SIGKILL');
    await world.waitRun('taken-over', 'takeover', ({ status }) => (status?.holder?.epoch ?? 0) > 1, 240_000);
    await world.waitUntil('LoopResumed', async () =>
      (await world.events('taken-over')).includes('LoopResumed'),
    );
    await write(`/hummingbird approve ${id}`);
    const run = await world.waitEnd('taken-over', 240_000);
    expect(run.status).toMatchObject({ phase: 'Succeeded', approvals: [{ id, state: 'Approved' }] });
    expect(run.status?.approvals).toHaveLength(1);
    expect(docs.calls.slice(before)).toEqual(['publish']);
    // One note of the run, and it holds the result.
    expect(
      world
        .notes()
        .slice(notes)
        .filter((body) => body.includes('published cache')),
    ).toHaveLength(1);
    expect(noteOf(run)).toContain('published cache');
    expect((await world.events('taken-over')).filter((reason) => reason === 'ApprovalRequired')).toHaveLength(
      1,
    );
    expect(world.gitlab.violations).toEqual([]);
  }, 600_000);
});
