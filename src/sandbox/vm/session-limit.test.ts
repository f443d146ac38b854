import { describe, expect, it } from 'vitest';
import { sessionLimit } from './session-limit.ts';

const settled = async (promise: Promise<unknown>) => {
  let done = false;
  promise.then(
    () => {
      done = true;
    },
    () => undefined,
  );
  await new Promise((resolve) => setImmediate(resolve));
  return done;
};

describe('the limit of sessions', () => {
  it('lets in so many, and the next one when somebody leaves', async () => {
    const limit = sessionLimit(2);
    const leave = await limit.enter();
    await limit.enter();
    const third = limit.enter();
    expect(await settled(third)).toBe(false);
    leave();
    leave();
    expect(await settled(third)).toBe(true);
    expect(await settled(limit.enter())).toBe(false);
  });

  it('keeps the order, without those who gave up', async () => {
    const limit = sessionLimit(1);
    const leave = await limit.enter();
    const given = new AbortController();
    const second = limit.enter(given.signal);
    const third = limit.enter();
    given.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    leave();
    expect(await settled(third)).toBe(true);
  });

  it('lets nobody in whose signal is aborted already', async () => {
    await expect(sessionLimit(1).enter(AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
  });
});
