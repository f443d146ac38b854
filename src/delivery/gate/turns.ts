import { setImmediate } from 'node:timers/promises';

/**
 * Reading much YAML takes long, and a replica that does nothing else for seconds is taken for dead: after every 64 K
 * characters the others have their turn. Call it with what was read.
 */
export function createTurns(): (characters: number) => Promise<void> {
  let left = TURN;
  return async (characters) => {
    left -= characters;
    if (left > 0) return;
    left = TURN;
    await setImmediate();
  };
}

const TURN = 64 * 1024;
