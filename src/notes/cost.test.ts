import { expect, test } from 'vitest';
import { extractCommands } from '../../test/fakes/gitlab/quick-actions.ts';
import { isCostly } from './cost.ts';
import { sanitise } from './sanitise.ts';

const KIB_60 = 60 * 1024;

test.each([
  '_a*',
  '*a_ ',
  '**a_b ',
  '~a*',
  '[a](',
  '[',
  '![',
  '[^1]',
  '[[',
  '> ',
  '- ',
  '> a\n>> b\n',
  '\n- [',
  '- a\n  ',
  '<b',
  '`a',
  '&#64;a',
  '|a|\n|-|\n',
  ' <details>',
  '\\',
  '@a/close\n',
])(
  '60 KiB of %j do not hold up the process',
  (piece) => {
    const started = performance.now();
    const clean = sanitise(`${piece.repeat(KIB_60 / piece.length)}\n/close`);
    // Generous for a loaded machine: without the limits this is minutes.
    expect(performance.now() - started).toBeLessThan(40_000);
    expect(extractCommands(clean).commands).toEqual([]);
  },
  60_000,
);

test('an ordinary long report is not costly', () => {
  const section =
    '## Job `unit_tests`\n\n- **test_cache_is_read_twice** failed in `src/cache_test.py`\n- see [the log](https://x/-/jobs/1)\n\n```\n[INFO] test_a_b_c ... ok\n[ERROR] test_d_e_f ... *** failed ***\n```\n\n';
  expect(isCostly(section.repeat(200))).toBe(false);
});

test('a fenced log of a thousand lines with names in it is not costly', () => {
  expect(isCostly(`\`\`\`\n${'[INFO] my_test_case_name ok __init__\n'.repeat(700)}\`\`\``)).toBe(false);
});
