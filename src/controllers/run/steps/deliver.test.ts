import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  aBump,
  application,
  deliveryPrompts,
  ESCALATION,
  FIX,
  HEAD,
  PUSHED,
} from '../../../../test/builders/bump.ts';
import { aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { startLocalSandbox } from '../../../../test/fakes/local-sandbox.ts';
import { type OpenAiServer, startOpenAi } from '../../../../test/fakes/openai/server.ts';
import { chooseModel } from '../../../agent/models/choose.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { Sandbox } from '../../../sandbox/port.ts';
import { createFolderStore } from '../../../store/folder.ts';
import type { ObjectStore } from '../../../store/port.ts';
import { StopReason } from '../execution.ts';
import { startLoop, takeResult } from './loop.ts';

const run = aRun({ phase: 'Claiming', sha: HEAD });
const uid = run.metadata.uid ?? '';
const workflow = (spec: Parameters<typeof aWorkflow>[0] = {}) => {
  const { prompt: _none, ...rest } = aWorkflow().spec;
  return aWorkflow({
    ...rest,
    prompt: undefined,
    sandbox: { poolRef: { name: 'analysis' } },
    delivery: {
      bumps: { labels: ['deps'], authors: [] },
      edits: { allowPaths: ['apps/**'], denyPaths: [], allOrNothing: true, maxAttempts: 2 },
      explainGreen: true,
      migrateDroppedVersions: true,
      structuralMigration: true,
      migrateMaxDocs: 5,
      upstreamNotes: { enabled: false, maxReleases: 5, maxCommits: 10, maxBodyChars: 4000 },
      liveReads: { enabled: false },
      needsHumanLabel: 'needs-human',
    },
    ...spec,
  } as Parameters<typeof aWorkflow>[0]);
};

let openai: OpenAiServer;
let http: HttpClient;
let folder: string;
let store: ObjectStore;
let sandbox: Sandbox;
let verdict: unknown;
beforeEach(async () => {
  verdict = FIX;
  openai = await startOpenAi({
    scripts: {
      'test-script': () => ({ text: JSON.stringify(verdict), usage: { prompt: 1000, completion: 100 } }),
    },
  });
  http = createHttpClient({});
  folder = await mkdtemp(join(tmpdir(), 'deliver-'));
  store = createFolderStore(folder);
  sandbox = await startLocalSandbox();
});
afterEach(async () => {
  await http.close();
  await openai.stop();
  await sandbox.cleanup();
  await rm(folder, { recursive: true, force: true });
});

function aDelivery(options: Parameters<typeof aBump>[0] = {}, spec?: Parameters<typeof workflow>[0]) {
  const bump = aBump(options);
  const delivered: string[] = [];
  const { reader, writer, charts, live, testimony, helm } = bump.parts;
  const world = aStep(
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
      delivery: async () => ({
        kind: 'Ok',
        value: { reader, writer, charts, live, testimony, prompts: deliveryPrompts, helmIn: () => helm },
      }),
      metrics: {
        step: () => undefined,
        approval: () => undefined,
        ended: () => undefined,
        delivered: (_, outcome) => void delivered.push(outcome),
      },
    },
    workflow(spec),
  );
  world.context.local.sandboxes.set(uid, sandbox);
  return { ...bump, ...world, delivered };
}
const ended = ({ context }: ReturnType<typeof aDelivery>) =>
  expect.poll(() => context.local.executions.get(uid)?.state, { timeout: 60_000 }).toBe('Finished');

describe('a run on a chart bump', () => {
  it('asks in the form of the schema, pushes, and reports like any other run', async () => {
    const world = aDelivery();
    const { status } = await startLoop(world.context);
    expect(status).toMatchObject({ phase: 'Running' });
    await ended(world);
    expect(world.commits[0]?.text).toBe(application('2.0.0').replace('daemon: true', 'daemon: false'));
    const taken = await takeResult(world.after({ ...run, status: { ...run.status, ...status } }));
    expect(taken.status).toMatchObject({
      iterations: 1,
      usage: { input: 1000, output: 100 },
      outcome: { reason: 'Succeeded', message: 'fixed: 1 value was edited' },
    });
    expect(openai.requests[0]).toMatchObject({ temperature: 0, response_format: { type: 'json_schema' } });
    expect(world.events).toEqual(['DeliveryStarted', 'BumpRepaired']);
    expect(world.delivered).toEqual(['Push']);
  });

  it('goes on with what an earlier holder decided, and pushes nothing twice', async () => {
    const first = aDelivery({ killAt: { act: 5, done: true } });
    await startLoop(first.context);
    await ended(first);
    // The first process died right after its push; whatever it would have said is gone with it.
    first.context.local.executions.delete(uid);
    verdict = ESCALATION;
    await startLoop(first.context);
    await ended(first);
    expect(first.context.local.executions.get(uid)?.result).toMatchObject({
      reason: 'Succeeded',
      text: expect.stringContaining(PUSHED.slice(0, 12)),
    });
    expect(first.commits).toHaveLength(1);
    expect(openai.requests).toHaveLength(1);
  });

  it('is a success that calls people when it escalates', async () => {
    verdict = ESCALATION;
    const world = aDelivery();
    await startLoop(world.context);
    await ended(world);
    expect(world.context.local.executions.get(uid)?.result).toMatchObject({
      reason: 'Succeeded',
      reported: true,
      message: 'needs a person: a Service goes away',
    });
    expect(world.events).toEqual(['DeliveryStarted', 'BumpEscalated']);
  });

  it('asks no model beyond its budget, and escalates', async () => {
    const world = aDelivery(
      {},
      {
        limits: {
          maxIterations: 5,
          contextTokens: 1000,
          timeout: '10m',
          maxRunsPerMergeRequest: 5,
          budgetUSD: '0',
        },
        model: {
          name: 'test-script',
          provider: 'OpenAICompatible',
          baseURL: 'http://model.test/v1',
          pricing: { input: '1', output: '1' },
        },
      },
    );
    await startLoop(world.context);
    await ended(world);
    expect(openai.requests).toEqual([]);
    expect(world.context.local.executions.get(uid)?.result?.text).toMatch(/budget of \$0 is used up/);
    expect(world.commits).toEqual([]);
  });

  it('ends with the word of whoever stops it', async () => {
    const world = aDelivery({ bump: { headSha: 'e'.repeat(40) } });
    await startLoop(world.context);
    await ended(world);
    expect(world.context.local.executions.get(uid)?.result).toMatchObject({ reason: 'Superseded' });
    const slow = aDelivery();
    openai.faults.push({ kind: 'Delay', ms: 60_000 });
    await startLoop(slow.context);
    await expect.poll(() => slow.acts.length).toBe(1);
    await slow.context.local.executions.get(uid)?.stop(new StopReason('Cancelled', 'spec.cancel is set'));
    expect(slow.context.local.executions.get(uid)?.result).toMatchObject({
      reason: 'Cancelled',
      message: 'spec.cancel is set',
    });
    expect(slow.commits).toEqual([]);
  });

  it('needs a sandbox', async () => {
    const world = aDelivery({}, { sandbox: { none: true } });
    const { status } = await startLoop(world.context);
    expect(status?.outcome).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('poolRef'),
    });
  });
});
