import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type S3Server, startS3 } from '../../../test/fakes/s3/server.ts';
import { type Checkpoint, parseCheckpoint } from '../../agent/checkpoint.ts';
import { createFolderStore } from '../../store/folder.ts';
import type { ObjectStore } from '../../store/port.ts';
import { createS3Store, type S3Store } from '../../store/s3.ts';
import { FencedError, newestCheckpoint, saveCheckpoint } from './checkpoints.ts';

const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
const aCheckpoint = (sequence: number): Checkpoint =>
  parseCheckpoint({
    ...{ version: 1, sequence, provider: 'openai', model: 'm', contents: [], iteration: sequence },
    ...{ emptyAnswers: 0, usage, lastInputTokens: 0, sentEntries: 0, toolCalls: 0 },
    ...{ spillCounter: 0, interimText: '', transcript: [] },
  });

describe.each(['a folder', 'S3'])('checkpoints in %s', (place) => {
  let folder: string;
  let server: S3Server;
  let s3: S3Store;
  let store: ObjectStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'checkpoints-'));
    server = await startS3('runs');
    s3 = createS3Store({
      ...{ bucket: 'runs', region: 'us-east-1', endpoint: server.endpoint, pathStyle: true },
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    });
    store = place === 'S3' ? s3 : createFolderStore(folder);
  });
  afterEach(async () => {
    s3.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('go on from the newest one, also past the ninth', async () => {
    for (const sequence of [1, 2, 9, 10]) await saveCheckpoint(store, 'run', aCheckpoint(sequence));
    await saveCheckpoint(store, 'another-run', aCheckpoint(11));
    expect(await newestCheckpoint(store, 'run')).toMatchObject({
      ref: { sequence: 10, key: 'runs/run/checkpoints/000010.json' },
      state: { iteration: 10 },
    });
    expect(await newestCheckpoint(store, 'none')).toBeUndefined();
  });

  it('let one of two holders through, also when both write the same bytes', async () => {
    const both = await Promise.allSettled([
      saveCheckpoint(store, 'run', aCheckpoint(1)),
      saveCheckpoint(store, 'run', aCheckpoint(1)),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = both.find((one) => one.status === 'rejected');
    expect(refused?.reason).toBeInstanceOf(FencedError);
    expect(String(refused?.reason)).toContain('runs/run/checkpoints/000001.json');
  });

  it('are not written after the loop was stopped', async () => {
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(saveCheckpoint(store, 'run', aCheckpoint(1), stopped)).rejects.toThrow('stopped');
    expect(await newestCheckpoint(store, 'run')).toBeUndefined();
  });
});
