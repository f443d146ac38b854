import { createHash } from 'node:crypto';
import type { ObjectStore } from '../../store/port.ts';
import { bytesOf, runPrefix } from './result.ts';

/** As `status.promptDigest` has it. */
export const digestOf = (prompt: string): string =>
  `sha256:${createHash('sha256').update(prompt).digest('hex')}`;

const keyOf = (runUid: string): string => `${runPrefix(runUid)}/prompt.md`;

/**
 * Keeps the prompt that a run begins with, since a ConfigMap or the operator's image may change before another holder
 * goes on. What was kept first stays, and is returned. Throws StoreError.
 */
export async function keepPrompt(store: ObjectStore, runUid: string, prompt: string): Promise<string> {
  const put = await store.put(keyOf(runUid), Buffer.from(prompt), {
    ifNoneMatch: true,
    contentType: 'text/markdown; charset=utf-8',
  });
  return put.kind === 'Stored' ? prompt : ((await readPrompt(store, runUid)) ?? prompt);
}

/** Undefined when none was kept. Throws StoreError. */
export async function readPrompt(store: ObjectStore, runUid: string): Promise<string | undefined> {
  const stored = await store.get(keyOf(runUid));
  return stored && (await bytesOf(stored)).toString('utf8');
}
