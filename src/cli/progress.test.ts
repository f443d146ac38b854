import { afterEach, describe, expect, it, vi } from 'vitest';
import type { LoopEvent } from '../agent/loop-events.ts';
import { createProgress } from './progress.ts';

const USAGE = { inputTokens: 12_345, outputTokens: 67, cacheReadTokens: 0, cacheWriteTokens: 0 };
const EVENTS: readonly LoopEvent[] = [
  { type: 'IterationStarted', iteration: 1, level: 'Normal' },
  {
    type: 'ModelAnswered',
    iteration: 1,
    finishReason: 'ToolCalls',
    toolCalls: 1,
    usage: USAGE,
    totalUsage: USAGE,
    costUsd: 0.0123,
  },
  { type: 'ToolStarted', iteration: 1, id: 'a', name: 'sandbox_exec' },
  {
    type: 'ToolFinished',
    iteration: 1,
    id: 'a',
    name: 'sandbox_exec',
    outcome: 'Ok',
    durationMs: 1_234,
    resultBytes: 56,
  },
];

function shown(options: { isTTY: boolean; quiet?: boolean; columns?: number }, events = EVENTS) {
  let text = '';
  const { isTTY, quiet = false, columns = 200 } = options;
  const progress = createProgress({
    screen: {
      isTTY,
      columns,
      write: (part) => {
        text += part;
      },
    },
    maxIterations: 30,
    quiet,
    now: () => Date.now(),
  });
  return { progress, feed: () => events.forEach(progress.event), text: () => text };
}

afterEach(() => vi.useRealTimers());

describe('progress', () => {
  it('is a line for each answer and call where nothing can be drawn', () => {
    const { feed, text } = shown({ isTTY: false });
    feed();
    expect(text()).toBe(
      '[1/30] model: 1 tool call, 12345 tokens in, 67 out, $0.0123\n[1/30] sandbox_exec: Ok, 1.2 s, 56 bytes\n',
    );
  });

  it('is one line on a terminal, with what is going on, cut to its width', () => {
    vi.useFakeTimers();
    const { progress, feed, text } = shown({ isTTY: true }, EVENTS.slice(0, 3));
    feed();
    vi.advanceTimersByTime(2_000);
    expect(text()).toContain(
      '\r\u001b[Kiteration 1/30 · 12.3k tokens in, 67 out · $0.0123 · sandbox_exec 2.0 s',
    );
    expect(text()).not.toContain('\n');
    progress.done();
    expect(text().endsWith('\r\u001b[K')).toBe(true);
    const narrow = shown({ isTTY: true, columns: 30 });
    narrow.feed();
    for (const line of narrow.text().split('\r\u001b[K')) expect(line.length).toBeLessThan(30);
    narrow.progress.done();
  });

  it('keeps a line that is said, above the one that is drawn', () => {
    const { progress, feed, text } = shown({ isTTY: true });
    feed();
    progress.say('the sandbox was lost');
    expect(text()).toContain('\r\u001b[Kthe sandbox was lost\n');
    progress.done();
  });

  it('is silent when told so, but for what is said', () => {
    const { progress, feed, text } = shown({ isTTY: true, quiet: true });
    feed();
    progress.say('a word');
    progress.done();
    expect(text()).toBe('a word\n');
  });

  it('tells retries and warnings everywhere', () => {
    for (const isTTY of [true, false]) {
      const { progress, feed, text } = shown({ isTTY }, [
        { type: 'ModelRetry', iteration: 1, attempt: 1, delayMs: 5_000, message: 'The model is overloaded.' },
        { type: 'Warning', message: 'No price is known.' },
      ]);
      feed();
      progress.done();
      expect(text()).toContain('The model is overloaded. Trying again in 5 s.\n');
      expect(text()).toContain('warning: No price is known.\n');
    }
  });
});
