import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import type { AgentSession } from '../../src/crds/agent-session.ts';
import { sharedCluster } from '../cluster/shared.ts';
import type { ChatRequestBody } from '../fakes/openai/check.ts';
import { aWorld, PROJECT, type World } from './world.ts';

const ANSWER = 'The cache is not emptied.';
const QUESTION = 'Which file did you keep?';

const said = ({ messages }: ChatRequestBody, text: string): boolean =>
  messages.some(({ content }) => typeof content === 'string' && content.includes(text));
const lastOf = ({ messages }: ChatRequestBody): string => JSON.stringify(messages.at(-1));

/** What the conversation of a run becomes when people reply. */
describe('a run that goes on with a session', () => {
  let world: World;
  /** The model keeps its answer to "slowly" back until this resolves. */
  let gate = Promise.withResolvers<void>();

  beforeAll(async () => {
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      scripts: {
        'test-script': async (request) => {
          const last = lastOf(request);
          if (last.includes(QUESTION))
            return { toolCalls: [{ name: 'sandbox_exec', args: { command: 'cat /tmp/data/kept' } }] };
          if (said(request, 'Then slowly')) await gate.promise;
          if (last.includes('from the first run')) return { text: 'I kept "from the first run".' };
          if (last.includes('slowly')) await gate.promise;
          if (last.includes('slowly') || last.includes('quickly')) return { text: `Answered: ${last}` };
          if (request.messages.some(({ role }) => role === 'tool')) return { text: ANSWER };
          return {
            toolCalls: [
              {
                name: 'sandbox_exec',
                args: { command: 'echo from the first run > /tmp/data/kept; echo done' },
              },
            ],
          };
        },
      },
    });
    await world.operator.waitReady();
  });
  afterAll(async () => {
    gate.resolve();
    await world?.close();
  });

  async function sessionOf(run: AgentRun): Promise<AgentSession> {
    const { agents } = world.namespaces;
    const id = run.spec.sessionRef?.name ?? run.metadata.uid ?? '';
    return JSON.parse(await world.kubectl(['get', 'agentsession', id, '-n', agents, '-o', 'json']));
  }

  /** A finished first run; its session is there to reply to. */
  async function answered(name: string): Promise<AgentRun> {
    await world.startRun(name);
    const run = await world.waitEnd(name);
    expect(run.status).toMatchObject({ phase: 'Succeeded', session: run.metadata.uid });
    return run;
  }

  const discussionOf = (run: AgentRun): string => run.status?.note?.discussionId ?? '';

  /** Replies as whoever applies a run by hand: the trigger only says where the answer goes. */
  const reply = (name: string, session: string, message: string, discussionId?: string, spec: object = {}) =>
    world.startRun(name, {
      sessionRef: { name: session },
      message,
      ...(discussionId === undefined ? {} : { trigger: { kind: 'Manual', discussionId } }),
      ...spec,
    });
  const notesIn = (discussionId: string): readonly string[] =>
    world.mergeRequest.discussions
      .filter(({ id }) => id === discussionId)
      .flatMap(({ notes }) => notes.map(({ body }) => body));
  const succeededOf = ({ status }: AgentRun) => status?.conditions?.find(({ type }) => type === 'Succeeded');

  it('is answered from the conversation of the run before it, in the sandbox that lingered for it', async () => {
    const first = await answered('first');
    const id = first.metadata.uid ?? '';
    const lingeringPod = async (of: AgentRun) => (await sessionOf(of)).status?.lingering?.pod;
    await expect.poll(() => lingeringPod(first), { timeout: 60_000 }).toBe(first.status?.sandbox?.name);
    const asked = world.openai.requests.length;
    await reply('second', id, QUESTION, discussionOf(first));
    const second = await world.waitEnd('second');

    expect(second.status).toMatchObject({ phase: 'Succeeded', iterations: 2, toolCalls: 1, session: id });
    const [request, ...others] = world.openai.requests.slice(asked);
    expect(others).toHaveLength(1);
    expect(request && said(request, ANSWER)).toBe(true);
    expect(request?.messages.at(-1)).toEqual({ role: 'user', content: QUESTION });
    expect(JSON.stringify(request?.messages[0])).toContain('This is a follow-up');
    expect(second.status?.sandbox?.name).toBe(first.status?.sandbox?.name);

    const notes = notesIn(discussionOf(first));
    expect(notes).toHaveLength(2);
    expect(notes[0]).toContain(ANSWER);
    expect(notes[1]).toContain('I kept "from the first run".');
    expect(notes[1]).toContain(id);

    const session = await sessionOf(second);
    expect(session.status).toMatchObject({ runs: 2, lastRun: { name: 'second' } });
    expect(session.status?.workspace?.bytes).toBeGreaterThan(0);
    expect(await world.events('second')).toEqual(
      expect.arrayContaining(['SessionOpened', 'SandboxReclaimed', 'SessionSaved', 'SandboxLingers']),
    );
    expect(await world.podsOf(second)).toEqual([]);

    // The third run stands on the second one's words and files; its sandbox is gone, so they come from the archive.
    const { sandboxes } = world.namespaces;
    const lingering = second.status?.sandbox?.name ?? '';
    await expect.poll(() => lingeringPod(second), { timeout: 60_000 }).toBe(lingering);
    await world.kubectl(['delete', 'pod', lingering, '-n', sandboxes, '--timeout=60s']);
    await expect.poll(() => lingeringPod(second), { timeout: 60_000 }).toBeUndefined();
    await reply('third', id, QUESTION, discussionOf(first));
    const third = await world.waitEnd('third');
    expect(third.status?.phase).toBe('Succeeded');
    expect(third.status?.sandbox?.name).not.toBe(lingering);
    const thirdRequest = world.openai.requests.at(-2);
    expect(thirdRequest && said(thirdRequest, 'I kept')).toBe(true);
    expect((await sessionOf(third)).status?.runs).toBe(3);
  });

  it('takes its turn: two replies at once are answered in order, each in view of the one before', async () => {
    const first = await answered('parent');
    const id = first.metadata.uid ?? '';
    gate = Promise.withResolvers();
    await reply('reply-1', id, 'slowly', discussionOf(first), {
      trigger: { kind: 'Manual', discussionId: discussionOf(first), noteId: 1001 },
    });
    await reply('reply-2', id, 'quickly', discussionOf(first), {
      trigger: { kind: 'Manual', discussionId: discussionOf(first), noteId: 1002 },
    });
    const waiting = await world.waitRun(
      'reply-2',
      'wait',
      (run) => succeededOf(run)?.reason === 'AwaitingTurn',
    );
    expect(succeededOf(waiting)?.message).toContain('AgentRun reply-1');
    await world.waitRun('reply-1', 'loop', ({ status }) => status?.phase === 'Running');
    // It holds nothing that others could use, and does not ask the model.
    expect(await world.podsOf(waiting)).toEqual([]);
    expect((await world.getRun('reply-2')).status?.phase).toBe('Claiming');
    gate.resolve();
    const [one, two] = [await world.waitEnd('reply-1'), await world.waitEnd('reply-2')];
    expect([one.status?.phase, two.status?.phase]).toEqual(['Succeeded', 'Succeeded']);
    expect(Date.parse(two.status?.startTime ?? '')).toBeGreaterThanOrEqual(
      Date.parse(one.status?.completionTime ?? '') - 1000,
    );
    const request = world.openai.requests.find((one) => lastOf(one).includes('quickly'));
    expect(request && said(request, 'slowly')).toBe(true);
    expect((await sessionOf(two)).status?.runs).toBe(3);
    expect(notesIn(discussionOf(first))).toHaveLength(3);
  });

  it('gets its turn when the run before it is deleted', async () => {
    const first = await answered('abandoned');
    const id = first.metadata.uid ?? '';
    gate = Promise.withResolvers();
    await reply('deleted-1', id, 'slowly');
    await world.waitRun('deleted-1', 'loop', ({ status }) => status?.phase === 'Running');
    await reply('deleted-2', id, 'quickly');
    await world.waitRun('deleted-2', 'wait', (run) => succeededOf(run)?.reason === 'AwaitingTurn');
    const { agents } = world.namespaces;
    await world.kubectl(['delete', 'agentrun', 'deleted-1', '-n', agents, '--timeout=60s']);
    const run = await world.waitEnd('deleted-2');
    expect(run.status?.phase).toBe('Succeeded');
    gate.resolve();
  });

  it('waits for the first run of a session that is still at work', async () => {
    gate = Promise.withResolvers();
    await world.startRun('busy', { message: 'unheard' });
    const busy = await world.getRun('busy');
    await reply('early', busy.metadata.uid ?? '', 'quickly');
    const early = await world.waitEnd('early');
    expect(early.status?.phase).toBe('Succeeded');
    expect((await sessionOf(early)).status).toMatchObject({ runs: 2, lastRun: { name: 'early' } });
  });

  it('goes on after its operator was killed, with the conversation and the session that it had found', async () => {
    const first = await answered('before-kill');
    const id = first.metadata.uid ?? '';
    gate = Promise.withResolvers();
    const asked = world.openai.requests.length;
    await reply('killed', id, `${QUESTION} Then slowly.`);
    await world.waitRun('killed', 'a tool call', ({ status }) => (status?.toolCalls ?? 0) >= 1);
    await world.operator.stop('SIGKILL');
    await world.restart();
    gate.resolve();
    const killed = await world.waitEnd('killed');
    expect(killed.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 }, session: id });
    expect(await world.events('killed')).toEqual(expect.arrayContaining(['TakenOver', 'LoopResumed']));
    expect(world.notes().at(-1)).toContain('I kept "from the first run".');
    // Two calls answer it; a kill repeats one at the most. Every one of them was told that it is a follow-up.
    const requests = world.openai.requests.slice(asked);
    expect(requests.length).toBeLessThanOrEqual(3);
    for (const { messages } of requests) expect(JSON.stringify(messages[0])).toContain('This is a follow-up');
    expect((await sessionOf(killed)).status).toMatchObject({ runs: 2, lastRun: { name: 'killed' } });
  });

  it('says politely that its session has expired, and does not start from nothing', async () => {
    const first = await answered('old');
    const session = await sessionOf(first);
    const { agents } = world.namespaces;
    await world.kubectl([
      ...['delete', 'agentsession', session.metadata.name ?? '', '-n', agents, '--timeout=60s'],
    ]);
    const asked = world.openai.requests.length;
    await reply('late', session.metadata.name ?? '', QUESTION, discussionOf(first));
    const late = await world.waitEnd('late');
    expect(late.status?.phase).toBe('Failed');
    expect(succeededOf(late)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('has expired'),
    });
    const notes = notesIn(discussionOf(first));
    expect(notes).toHaveLength(2);
    expect(notes[1]).toContain('has expired');
    expect(notes[1]).toContain('start the analyze-failures workflow anew');
    expect(notes[1]).not.toContain('failed');
    expect(world.openai.requests).toHaveLength(asked);
    expect(late.status?.sandbox).toBeUndefined();
  });

  it('is refused the session of another merge request, before anything is posted', async () => {
    const first = await answered('ours');
    const other = world.gitlab.state.mergeRequest(world.project, {
      author: world.mergeRequest.author,
      title: 'Another one',
    });
    const before = world.notes().length;
    await reply('foreign', first.metadata.uid ?? '', QUESTION, undefined, {
      mergeRequest: { project: PROJECT, iid: other.iid },
    });
    const foreign = await world.waitEnd('foreign');
    expect(succeededOf(foreign)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining(`belongs to workflow analyze-failures on ${PROJECT}!1`),
    });
    expect(world.notes()).toHaveLength(before);
    expect(other.discussions).toEqual([]);
    expect((await sessionOf(first)).status?.runs).toBe(1);
  });
});
