import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../../../test/builders/run.ts';
import { anEnvelope, aSession } from '../../../../test/builders/session.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import type { Checkpoint } from '../../../agent/checkpoint.ts';
import { chooseModel } from '../../../agent/models/choose.ts';
import { loadSession, saveSession as saveFiles, sessionKey } from '../../../agent/session.ts';
import type { AgentSession } from '../../../crds/agent-session.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { KubeClient, Patch } from '../../../kube/port.ts';
import { createFolderStore } from '../../../store/folder.ts';
import type { ObjectStore } from '../../../store/port.ts';
import { saveCheckpoint } from '../checkpoints.ts';
import { keepEarlier } from '../earlier.ts';
import { bytesOf } from '../result.ts';
import { saveSession } from './session.ts';

const run = aRun(
  { phase: 'Finishing', sha: 'b'.repeat(40), costUSD: '0.02' },
  { spec: { sessionRef: { name: 's-1' }, message: 'And now?' } },
);
const uid = run.metadata.uid ?? '';
const checkpoint: Checkpoint = {
  version: 1,
  sequence: 1,
  provider: 'openai',
  model: 'test-script',
  contents: [
    ...anEnvelope().contents,
    { role: 'user', content: 'And now?' },
    { role: 'assistant', content: 'Still the cache.' },
  ],
  iteration: 1,
  emptyAnswers: 0,
  usage: { inputTokens: 5, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
  lastInputTokens: 5,
  sentEntries: 3,
  toolCalls: 0,
  spillCounter: 0,
  interimText: '',
  transcript: [
    { kind: 'model_text', iteration: 1, ts: '2026-03-01T12:00:00.000Z', text: 'Still the cache.' },
  ],
};

let folder: string;
let store: ObjectStore;
let http: HttpClient;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'save-'));
  store = createFolderStore(folder);
  http = createHttpClient({});
  await saveFiles(store, { envelope: anEnvelope(), transcript: '# The first run\n' });
  await keepEarlier(store, uid, 's-1', new AbortController().signal);
  await saveCheckpoint(store, uid, checkpoint);
});
afterEach(async () => {
  await http.close();
  await rm(folder, { recursive: true, force: true });
});

/** The step with an API server that holds one AgentSession and takes every status. */
function save() {
  let session: AgentSession = aSession({ runs: 1, lastRun: { name: 'run-0', time: 't' }, costUSD: '0.01' });
  const kube = {
    get: async () => session,
    patch: async (_: unknown, __: unknown, patch: Patch) => {
      // All that is applied is a status.
      const { status } = patch.body as { status: NonNullable<AgentSession['status']> };
      session = { ...session, status };
      return session;
    },
  } as unknown as KubeClient; // the two methods that the step uses
  const { context } = aStep(
    run,
    {
      kube,
      store,
      model: async () => ({
        kind: 'Ok',
        value: chooseModel(
          { name: 'test-script', provider: 'OpenAICompatible', baseUrl: 'http://m' },
          { http },
        ),
      }),
    },
    aWorkflow(),
  );
  return {
    save: async () => {
      const { status } = await saveSession(context);
      return status?.conditions?.find(({ type }) => type === 'SessionSaved');
    },
    status: () => session.status,
  };
}
const envelopeNow = async () => {
  const loaded = await loadSession(store, 's-1');
  if (loaded?.read.kind !== 'Canonical') throw new Error('an envelope was saved');
  return loaded.read.envelope;
};
const transcriptNow = async () => {
  const stored = await store.get(sessionKey('s-1', 'transcript'));
  return stored === undefined ? '' : (await bytesOf(stored)).toString('utf8');
};

describe('saving a session that was continued', () => {
  it('replaces the conversation, adds up tokens and cost, and counts the run', async () => {
    const step = save();
    expect(await step.save()).toMatchObject({ status: 'True', reason: 'Saved' });
    expect(await envelopeNow()).toMatchObject({
      session_id: 's-1',
      run: uid,
      usage: { input_tokens: 15, output_tokens: 3 },
      contents: checkpoint.contents,
    });
    expect(step.status()).toMatchObject({ runs: 2, costUSD: '0.03', lastRun: { name: 'run-1' } });
  });

  it('puts its transcript, with what was asked, below the earlier one', async () => {
    await save().save();
    const text = await transcriptNow();
    expect(text).toMatch(/^# The first run\n\n---\n\n# analyze-failures on group\/app!42/);
    expect(text).toContain('And now?');
    expect(text).toContain('Still the cache.');
  });

  it('changes nothing when it is done again, whoever does it', async () => {
    await save().save();
    const before = [await envelopeNow(), await transcriptNow()];
    const again = save();
    expect(await again.save()).toMatchObject({ status: 'True', reason: 'Saved' });
    expect([await envelopeNow(), await transcriptNow()]).toEqual(before);
    expect(again.status()).toMatchObject({
      runs: 2,
      archive: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: expect.any(Number) },
      transcript: { sha256: before[0] && (await envelopeNow()).files?.transcript?.sha256 },
    });
  });

  it('replaces no conversation but the one it found, and none of the files beside it', async () => {
    await saveFiles(store, { envelope: anEnvelope({ run: 'another' }), transcript: '# Another run\n' });
    const step = save();
    expect(await step.save()).toMatchObject({ status: 'False', reason: 'Conflict' });
    expect((await envelopeNow()).run).toBe('another');
    expect(await transcriptNow()).toBe('# Another run\n');
    expect(step.status()?.runs).toBe(1);
  });

  it('does not bring back a session that has expired meanwhile', async () => {
    await store.delete(sessionKey('s-1', 'context'));
    expect(await save().save()).toMatchObject({ status: 'False', reason: 'Conflict' });
    expect(await loadSession(store, 's-1')).toBeUndefined();
  });
});
