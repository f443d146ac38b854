import { expect, test } from 'vitest';
import type { SecretObject } from './secrets.ts';
import { sharedReads } from './shared-reads.ts';

/** Answers with how often it was asked; the clock stands until it is told to go on. */
function world(answer: (count: number) => Promise<SecretObject | undefined>) {
  const clock = { now: 0 };
  const asked: string[] = [];
  const read = sharedReads(
    (namespace, name) => {
      asked.push(`${namespace}/${name}`);
      return answer(asked.length);
    },
    2_000,
    () => clock.now,
  );
  return { clock, asked, read };
}
const secret = async (count: number): Promise<SecretObject> => ({
  labels: {},
  data: { read: String(count) },
});

test('whoever asks for a Secret at the same time, or soon after, shares one read', async () => {
  const { asked, read, clock } = world(secret);
  const both = await Promise.all([read('a', 'key'), read('a', 'key')]);
  clock.now = 1_999;
  expect([...both, await read('a', 'key')].map((found) => found?.data['read'])).toEqual(['1', '1', '1']);
  expect(asked).toEqual(['a/key']);
});

test('a Secret that was rotated counts when the time of the read before is over', async () => {
  const { read, clock } = world(secret);
  await read('a', 'key');
  clock.now = 2_000;
  expect((await read('a', 'key'))?.data['read']).toBe('2');
});

test('Secrets are told apart by namespace and name', async () => {
  const { asked, read } = world(secret);
  await Promise.all([read('a', 'key'), read('b', 'key'), read('a', 'other')]);
  expect(asked).toEqual(['a/key', 'b/key', 'a/other']);
});

test('a Secret that is missing, or could not be read, is asked for again at once', async () => {
  const { read } = world(async (count) => {
    if (count === 2) throw new Error('away');
    return count === 1 ? undefined : secret(count);
  });
  expect(await read('a', 'key')).toBeUndefined();
  await expect(read('a', 'key')).rejects.toThrow('away');
  expect((await read('a', 'key'))?.data['read']).toBe('3');
});
