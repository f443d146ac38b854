import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import { aStep } from '../../../test/builders/step.ts';
import { createFolderStore } from '../../store/folder.ts';
import type { ObjectStore } from '../../store/port.ts';
import { keepResult, money, type RunResult, readResult } from './result.ts';

const aResult = (text: string): RunResult => ({
  ...{ version: 1, reason: 'Succeeded', message: 'm', text, reported: true, transcriptExcerpt: '' },
});

describe('the result of a run', () => {
  let folder: string;
  let store: ObjectStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'result-'));
    store = createFolderStore(folder);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('is the first one that was stored, whoever comes second', async () => {
    const first = await keepResult(store, 'uid', aResult('first'));
    const second = await keepResult(store, 'uid', aResult('second'));
    expect(second).toEqual(first);
    expect(second.result.text).toBe('first');
  });

  it('is read from the store by a process that did not make it', async () => {
    const { key, sha256, bytes } = await keepResult(
      store,
      '11111111-2222-4333-8444-555555555555',
      aResult('t'),
    );
    const outcome = { reason: 'Succeeded', time: '2026-03-01T12:00:00Z', key, sha256, bytes } as const;
    expect((await readResult(aStep(aRun({ outcome }), { store }).context))?.text).toBe('t');
  });

  it('is absent when the loop never gave one', async () => {
    const outcome = { reason: 'Timeout', time: '2026-03-01T12:00:00Z' } as const;
    expect(await readResult(aStep(aRun({ outcome }), { store }).context)).toBeUndefined();
  });
});

describe('money', () => {
  it.each([
    [0, '0'],
    [0.000001, '0.000001'],
    [0.1 + 0.2, '0.3'],
    [10, '10'],
    [100.5, '100.5'],
  ])('writes %d as %s', (usd, text) => {
    expect(money(usd)).toBe(text);
  });
});
