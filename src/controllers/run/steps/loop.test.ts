import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { anEnvelope } from '../../../../test/builders/session.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { startLocalSandbox } from '../../../../test/fakes/local-sandbox.ts';
import { type OpenAiServer, startOpenAi } from '../../../../test/fakes/openai/server.ts';
import { archiveSandbox } from '../../../agent/archive.ts';
import { chooseModel } from '../../../agent/models/choose.ts';
import { CONTINUATION_PROMPT } from '../../../agent/prompts.ts';
import { type SessionToSave, saveSession, sessionKey } from '../../../agent/session.ts';
import type { Tool } from '../../../agent/tools/port.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { Sandbox, SandboxProvider } from '../../../sandbox/port.ts';
import type { ToolProblem, ToolServers } from '../../../sources/port.ts';
import { createFolderStore } from '../../../store/folder.ts';
import { type ObjectStore, StoreError } from '../../../store/port.ts';
import { newestCheckpoint } from '../checkpoints.ts';
import type { RunDeps } from '../deps.ts';
import { keepEarlier } from '../earlier.ts';
import { digestOf } from '../prompt.ts';
import { recordProgress, startLoop, takeResult } from './loop.ts';

const run = aRun({ phase: 'Running', sha: 'a'.repeat(40) });
const uid = run.metadata.uid ?? '';

let openai: OpenAiServer;
let http: HttpClient;
let folder: string;
let store: ObjectStore;
beforeEach(async () => {
  openai = await startOpenAi({ scripts: { 'test-script': () => ({ text: 'It is the cache.' }) } });
  http = createHttpClient({});
  folder = await mkdtemp(join(tmpdir(), 'loop-'));
  store = createFolderStore(folder);
});
afterEach(async () => {
  await http.close();
  await openai.stop();
  await rm(folder, { recursive: true, force: true });
});

const aLoop = (of = run, deps: Partial<RunDeps> = {}, workflow = aWorkflow()) =>
  aStep(
    of,
    {
      store,
      model: async () => ({
        kind: 'Ok',
        value: chooseModel(
          { name: 'test-script', provider: 'OpenAICompatible', baseUrl: openai.url },
          { http },
        ),
      }),
      prompt: async () => ({ kind: 'Ok', value: 'Look.' }),
      sources: { toolsFor: async () => [] },
      ...deps,
    },
    workflow,
  );
const ended = ({ context }: ReturnType<typeof aLoop>) =>
  expect.poll(() => context.local.executions.get(uid)?.state, { timeout: 10_000 }).toBe('Finished');

describe('the prompt of a run', () => {
  const inConfigMap = aWorkflow({ prompt: { configMapKeyRef: { name: 'prompts', key: 'it' } } });
  async function asked(phase: 'Claiming' | 'Running', prompt: string): Promise<string> {
    const of = aRun({ phase, sha: 'a'.repeat(40) });
    const world = aLoop(of, { prompt: async () => ({ kind: 'Ok', value: prompt }) }, inConfigMap);
    const { status } = await startLoop(world.context);
    await ended(world);
    const system = String(openai.requests.at(-1)?.messages[0]?.content);
    expect(status?.promptDigest).toBe(digestOf(system.includes('Look well.') ? 'Look well.' : prompt));
    return system;
  }

  it('is the one it began with, when another holder goes on after its ConfigMap has changed', async () => {
    expect(await asked('Claiming', 'Look well.')).toContain('Look well.');
    expect(await asked('Running', 'Look away.')).toContain('Look well.');
  });

  it('is the one of now, when the store is down', async () => {
    store = {
      ...store,
      get: () => Promise.reject(new StoreError('down', { retryable: true })),
      put: () => Promise.reject(new StoreError('down', { retryable: true })),
    };
    expect(await asked('Claiming', 'Look away.')).toContain('Look away.');
  });
});

describe('the tool servers of a run', () => {
  const tool = (name: string): Tool => ({
    definition: { name, description: name, parameters: { type: 'object' } },
    parse: (args) => ({ ok: true, args }),
    run: async () => ({ kind: 'Text', text: name }),
  });
  const serving = (tools: readonly Tool[], problems: readonly ToolProblem[] = []) => {
    let closed = 0;
    const toolServers: ToolServers = {
      open: async () => ({
        ...{ tools, problems },
        close: async () => {
          closed += 1;
        },
      }),
    };
    return { toolServers, closed: () => closed };
  };
  const system = () => String(openai.requests.at(-1)?.messages[0]?.content);

  it('are let go when its loop has ended', async () => {
    const { toolServers, closed } = serving([tool('docs_search')]);
    const world = aLoop(run, { toolServers });
    await startLoop(world.context);
    await ended(world);
    expect(openai.requests.at(-1)?.tools?.map(({ function: { name } }) => name)).toEqual(['docs_search']);
    expect(closed()).toBe(1);
  });

  it('that are not there are told to the model and in an Event', async () => {
    const problem = {
      kind: 'ToolServerUnavailable',
      message: 'MCP server docs: 500',
      note: 'The MCP server docs cannot be reached.',
    } as const;
    const world = aLoop(run, serving([], [problem]));
    await startLoop(world.context);
    await ended(world);
    expect(system()).toContain(problem.note);
    expect(system()).not.toContain('500');
    expect(world.events).toContain('ToolServerUnavailable');
  });

  it('cannot pass for a tool of ours, or for each other', async () => {
    const { toolServers } = serving([tool('sandbox_exec'), tool('a_b_c'), tool('a_b_c')]);
    const world = aLoop(run, { toolServers });
    await startLoop(world.context);
    await ended(world);
    expect(openai.requests.at(-1)?.tools?.map(({ function: { name } }) => name)).toEqual(['a_b_c']);
    expect(world.events.filter((reason) => reason === 'ToolWithheld')).toHaveLength(2);
  });

  it('whose credentials are gone cost the run their tools only', async () => {
    const open = () => Promise.reject(new Error('Secret agents/docs does not exist'));
    const world = aLoop(run, { toolServers: { open } });
    await startLoop(world.context);
    await ended(world);
    expect(world.context.local.executions.get(uid)?.result).toMatchObject({ reason: 'Succeeded' });
    expect(world.events).toContain('ToolServerUnavailable');
  });
});

describe('the loop of a run that goes on with a session', () => {
  const reply = aRun(
    { phase: 'Claiming', sha: 'b'.repeat(40) },
    {
      spec: {
        sessionRef: { name: 's-1' },
        message: 'And now, with sk-secret?',
        sandbox: { poolRef: { name: 'analysis', namespace: 'sandboxes' } },
      },
    },
  );
  const redact = (text: string) => text.replaceAll('sk-secret', '***');

  /** The loop with the session that the store holds, in a sandbox of its own. */
  async function resumed(sandbox?: Sandbox, more: { reclaimed?: true; sandboxes?: SandboxProvider } = {}) {
    const { reclaimed, ...deps } = more;
    await keepEarlier(store, uid, 's-1', new AbortController().signal);
    const world = aLoop(reply, { redact, ...deps });
    if (reclaimed) world.context.local.reclaimed.add(uid);
    if (sandbox !== undefined) world.context.local.sandboxes.set(uid, sandbox);
    await startLoop(world.context);
    await ended(world);
    return world;
  }

  it('shows the model the earlier conversation, then what was said, and how to go on', async () => {
    await saveSession(store, { envelope: anEnvelope(), transcript: '' });
    const { context } = await resumed();
    const [system, ...rest] = openai.requests[0]?.messages ?? [];
    expect(system?.content).toContain(CONTINUATION_PROMPT);
    expect(rest).toEqual([
      { role: 'user', content: 'What failed?' },
      { role: 'assistant', content: 'It is the cache.' },
      { role: 'user', content: 'And now, with ***?' },
    ]);
    expect(recordProgress(context).status).toMatchObject({ iterations: 1 });
  });

  it('goes on with a conversation that another provider had, from before there were envelopes', async () => {
    const contents = [
      { role: 'user', parts: [{ text: 'What failed?' }] },
      { role: 'model', parts: [{ functionCall: { name: 'sandbox_exec', args: { command: 'ls' } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'sandbox_exec', response: { stdout: 'a' } } }] },
      { role: 'model', parts: [{ text: 'It is the cache.' }] },
    ];
    await store.put(sessionKey('s-1', 'context'), Buffer.from(JSON.stringify({ contents })));
    await resumed();
    expect(openai.refusals).toEqual([]);
    expect(openai.requests[0]?.messages.map(({ role }) => role)).toEqual([
      ...['system', 'user', 'assistant', 'tool', 'assistant', 'user'],
    ]);
  });

  it('has the files of the earlier sandbox, and gives out no number of theirs again', async () => {
    const [old, fresh] = await Promise.all([startLocalSandbox(), startLocalSandbox()]);
    await old.exec('mkdir -p /tmp/data/_out && echo kept > /tmp/data/_out/job_012.log');
    const archive: SessionToSave['archive'] = (to, key) => archiveSandbox(old, to, key);
    await saveSession(store, { envelope: anEnvelope(), transcript: '', archive });
    const { events } = await resumed(fresh);
    const read = await fresh.exec('cat /tmp/data/_out/job_012.log');
    expect(Buffer.from(read.stdout).toString()).toBe('kept\n');
    expect(events).not.toContain('FilesNotRestored');
    expect((await newestCheckpoint(store, uid))?.state.spillCounter).toBe(12);
    await Promise.all([old.cleanup(), fresh.cleanup()]);
  });

  it('leaves a sandbox that lingered as it is, and gives out no number of its files again', async () => {
    const [old, kept] = await Promise.all([startLocalSandbox(), startLocalSandbox()]);
    const archive: SessionToSave['archive'] = (to, key) => archiveSandbox(old, to, key);
    await old.exec('mkdir -p /tmp/data/_out && echo saved > /tmp/data/file');
    await saveSession(store, { envelope: anEnvelope(), transcript: '', archive });
    await kept.exec(
      'mkdir -p /tmp/data/_out && echo there > /tmp/data/file && touch /tmp/data/_out/log_007.txt',
    );
    const { events } = await resumed(kept, { reclaimed: true });
    expect(Buffer.from((await kept.exec('cat /tmp/data/file')).stdout).toString()).toBe('there\n');
    expect((await newestCheckpoint(store, uid))?.state.spillCounter).toBe(7);
    expect(events).toEqual(['LoopStarted']);
    await Promise.all([old.cleanup(), kept.cleanup()]);
  });

  it('takes the archive and a fresh sandbox when the one that lingered died', async () => {
    const [kept, fresh] = await Promise.all([startLocalSandbox(), startLocalSandbox()]);
    const archive: SessionToSave['archive'] = (to, key) => archiveSandbox(kept, to, key);
    await kept.exec('echo saved > /tmp/data/file');
    await saveSession(store, { envelope: anEnvelope(), transcript: '', archive });
    kept.lose();
    // The one method that a loss needs.
    const sandboxes = {
      claim: async () => ({ kind: 'Claimed', sandbox: fresh }),
    } as Partial<SandboxProvider> as SandboxProvider;
    const { events, context } = await resumed(kept, { reclaimed: true, sandboxes });
    expect(Buffer.from((await fresh.exec('cat /tmp/data/file')).stdout).toString()).toBe('saved\n');
    expect(events).toContain('SandboxLost');
    expect(events).not.toContain('FilesNotRestored');
    expect(context.local.sandboxes.get(uid)).toBe(fresh);
    await fresh.cleanup();
  });

  it('is told when the files are of another save, and goes on without them', async () => {
    const [old, fresh] = await Promise.all([startLocalSandbox(), startLocalSandbox()]);
    const archive: SessionToSave['archive'] = (to, key) => archiveSandbox(old, to, key);
    await saveSession(store, { envelope: anEnvelope(), transcript: '', archive });
    await old.exec('echo newer > /tmp/data/newer');
    await archiveSandbox(old, store, sessionKey('s-1', 'sandbox'));
    const { events, context } = await resumed(fresh);
    expect(events).toContain('FilesNotRestored');
    expect(JSON.stringify(openai.requests[0]?.messages.at(-1))).toContain('another save of the session');
    expect(context.local.executions.get(uid)?.result?.reason).toBe('Succeeded');
    await Promise.all([old.cleanup(), fresh.cleanup()]);
  });

  it('goes on from its own checkpoint, not from the session, after a restart', async () => {
    await saveSession(store, { envelope: anEnvelope(), transcript: '' });
    await resumed();
    const again = aLoop({ ...reply, status: { ...reply.status, phase: 'Running' } });
    await startLoop(again.context);
    await ended(again);
    expect(again.events).toContain('LoopResumed');
    expect(openai.requests).toHaveLength(1);
  });
});

describe('the loop of a run', () => {
  it('works beside the reconciles, which record what it did and take its end', async () => {
    const world = aLoop();
    expect((await startLoop(world.context)).status?.phase).toBe('Running');
    await ended(world);
    expect(recordProgress(world.context).status).toMatchObject({
      iterations: 1,
      checkpoint: { sequence: 1 },
    });
    const { status } = await takeResult(world.context);
    expect(status).toMatchObject({
      phase: 'Finishing',
      iterations: 1,
      outcome: { reason: 'Succeeded', key: `runs/${uid}/result.json` },
    });
  });

  it('is not paid for twice when the operator ends between its last checkpoint and its result', async () => {
    await startLoop(aLoop().context).then(() => undefined);
    await expect.poll(() => newestCheckpoint(store, uid), { timeout: 10_000 }).toBeDefined();
    const again = aLoop();
    await startLoop(again.context);
    await ended(again);
    expect(again.events).toContain('LoopResumed');
    expect(again.context.local.executions.get(uid)?.result?.text).toContain('It is the cache.');
    expect(openai.requests).toHaveLength(1);
  });

  it('ends with the reason, once, when its checkpoint is of another provider than the model is now', async () => {
    const first = aLoop();
    await startLoop(first.context);
    await ended(first);
    const newest = await newestCheckpoint(store, uid);
    const { ending: _, ...open } = newest?.state ?? {};
    const key = `runs/${uid}/checkpoints/000002.json`;
    await store.put(key, Buffer.from(JSON.stringify({ ...open, sequence: 2, provider: 'gcp.gemini' })));
    const again = aLoop();
    await startLoop(again.context);
    await ended(again);
    expect(again.context.local.executions.get(uid)?.result).toMatchObject({
      reason: 'ModelError',
      reported: false,
      message: expect.stringContaining('gcp.gemini'),
    });
  });

  it('does not begin in a process that stops', async () => {
    const { context } = aLoop();
    context.local.stopping = true;
    expect(await startLoop(context)).toEqual({ afterMs: expect.any(Number) });
    expect(context.local.executions.size).toBe(0);
    expect(openai.requests).toEqual([]);
  });
});
