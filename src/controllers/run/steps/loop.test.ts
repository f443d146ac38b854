import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { type OpenAiServer, startOpenAi } from '../../../../test/fakes/openai/server.ts';
import { chooseModel } from '../../../agent/models/choose.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import { createFolderStore } from '../../../store/folder.ts';
import type { ObjectStore } from '../../../store/port.ts';
import { newestCheckpoint } from '../checkpoints.ts';
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

const aLoop = () =>
  aStep(
    run,
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
    },
    aWorkflow(),
  );
const ended = ({ context }: ReturnType<typeof aLoop>) =>
  expect.poll(() => context.local.executions.get(uid)?.state, { timeout: 10_000 }).toBe('Finished');

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
