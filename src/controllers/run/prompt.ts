import { createHash } from 'node:crypto';
import type { ObjectStore } from '../../store/port.ts';
import { bytesOf, runPrefix } from './result.ts';

/** As `status.promptDigest` has it. */
export const digestOf = (prompt: string): string =>
  `sha256:${createHash('sha256').update(prompt).digest('hex')}`;

const keyOf = (runUid: string): string => `${runPrefix(runUid)}/prompt.md`;

/**
 * Keeps the prompt that a run begins with, since a ConfigMap or the operator's image may change before another holder
 * goes on. Of two that begin it, one after the other, the later one counts: its conversation goes on. Throws StoreError.
 */
export async function keepPrompt(store: ObjectStore, runUid: string, prompt: string): Promise<void> {
  await store.put(keyOf(runUid), Buffer.from(prompt), { contentType: 'text/markdown; charset=utf-8' });
}

/** Undefined when none was kept. Throws StoreError. */
export async function readPrompt(store: ObjectStore, runUid: string): Promise<string | undefined> {
  const stored = await store.get(keyOf(runUid));
  return stored && (await bytesOf(stored)).toString('utf8');
}
