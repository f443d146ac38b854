import { describe, expect, it } from 'vitest';
import { aServing } from '../../../test/builders/bridge.ts';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import { ambiguousText, cancelText, helpText, statusText, unknownText } from './texts.ts';

describe('help', () => {
  it('lists the workflows with what they do, their aliases, and what else there is', () => {
    const text = helpText('/hummingbird', [
      aServing('review', { description: 'Reviews\nthe change', commands: { aliases: ['cr'] } }),
      aServing('analyze', { suspend: true }),
    ]);
    expect(text).toContain('- `/hummingbird review` (also `cr`): Reviews the change\n');
    expect(text).toContain('- `/hummingbird analyze` _Suspended._\n');
    for (const name of ['help', 'status', 'cancel', 'stop'])
      expect(text).toContain(`\`/hummingbird ${name}\``);
    expect(text).not.toMatch(/^\/hummingbird/m);
  });

  it('says so when there is none', () => {
    expect(helpText('/hummingbird', [])).toContain('No workflow serves this project.');
  });
});

it('what somebody wrote is quoted as code, on one line, and not at any length', () => {
  expect(unknownText('a`b\n|c', '/hummingbird', [])).toMatch(/^There is no command `a b c`\.\n/);
  expect(ambiguousText('x'.repeat(1000), '/hummingbird', []).length).toBeLessThan(300);
});

describe('status', () => {
  it('has a row for each run, the newest first, and leaves an unknown cost out', () => {
    const text = statusText([
      aRun(
        {
          phase: 'Failed',
          iterations: 3,
          costUSD: '0.12',
          conditions: [aCondition('Succeeded', 'False', 'Timeout')],
        },
        { metadata: { name: 'old', creationTimestamp: '2026-03-01T10:00:00Z' } },
      ),
      aRun({}, { metadata: { name: 'new', creationTimestamp: '2026-03-01T11:00:00Z' } }),
    ]);
    expect(text.split('\n').slice(2)).toEqual([
      '| `new` | `analyze-failures` | Pending | 0 |  |',
      '| `old` | `analyze-failures` | Failed (Timeout) | 3 | 0.12 USD |',
    ]);
  });

  it('counts those it does not show', () => {
    const runs = Array.from({ length: 12 }, (_, index) => aRun({}, { metadata: { name: `run-${index}` } }));
    expect(statusText(runs)).toMatch(/and 2 older ones$/);
    expect(statusText([])).toBe('No run on this merge request is known.');
  });
});

it('a cancellation names what it stops', () => {
  expect(cancelText([aRun()], undefined)).toBe('Stopping this run:\n\n- `run-1`');
  expect(cancelText([aRun(), aRun({}, { metadata: { name: 'run-2' } })], 'review')).toBe(
    'Stopping these 2 runs of `review`:\n\n- `run-1`\n- `run-2`',
  );
  expect(cancelText([], 'review')).toBe('No run of `review` is under way on this merge request.');
});
