import { describe, expect, it } from 'vitest';
import { nextAttempt } from './attempts.ts';

describe('G7: the number of tries is bounded', () => {
  const rows: readonly (readonly [labels: readonly string[], expected: unknown])[] = [
    [[], { kind: 'Attempt', number: 1, label: 'bot/attempt-1' }],
    [['renovate', 'bot/attempt-1'], { kind: 'Attempt', number: 2, label: 'bot/attempt-2' }],
    [['bot/attempt-1', 'bot/attempt-2'], { kind: 'Exhausted', made: 2 }],
    [['bot/attempt-2'], { kind: 'Exhausted', made: 2 }],
    [['bot/attempt-99'], { kind: 'Exhausted', made: 99 }],
    [
      ['other/attempt-2', 'bot/attempt-', 'bot/attempt-x', 'xbot/attempt-2'],
      { kind: 'Attempt', number: 1, label: 'bot/attempt-1' },
    ],
  ];
  it.each(rows)('%j', (labels, expected) =>
    expect(nextAttempt(labels, { brand: 'bot', maxAttempts: 2 })).toEqual(expected),
  );
});
