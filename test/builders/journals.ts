import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type JournalEntry, parseJournalEntry } from '../../src/agent/journal.ts';
import { recordLoop } from '../../src/agent/journal-record.ts';
import { replayLoop } from '../../src/agent/journal-replay.ts';
import type { LoopOptions, LoopResult } from '../../src/agent/loop.ts';
import type { Model } from '../../src/agent/models/port.ts';

/** Where journals are kept for a look at them; left out: nowhere. */
const JOURNALS_DIRECTORY = process.env['HUMMINGBIRD_TEST_JOURNALS'];

/** Larger journals are resumed from every fifth checkpoint only, since each holds megabytes. */
const EVERY_CHECKPOINT_BYTES = 4 * 1024 * 1024;

interface Recorded {
  readonly adapter: Model;
  readonly lines: string[];
}

/** The loops of one test, each with its journal. */
export class Journals {
  readonly #recorded: Recorded[] = [];

  /** `runLoop`, recorded. */
  async run(options: LoopOptions): Promise<LoopResult> {
    const lines: string[] = [];
    this.#recorded.push({ adapter: options.model, lines });
    return await recordLoop(options, (entry) => lines.push(JSON.stringify(entry)));
  }

  /**
   * Replays every loop, from its beginning and as if it had been killed after each of its checkpoints: the end must
   * be the same, nothing more may be asked than the recorded loop asked from there on, and little may be repeated.
   * A loop that could not even begin has no journal. Returns how many replays there were.
   */
  async replayAll(): Promise<number> {
    let replays = 0;
    for (const [index, { adapter, lines }] of this.#recorded.splice(0).entries()) {
      await keep(lines, index);
      const journal = lines.map(parseJournalEntry);
      if (journal.at(-1)?.kind !== 'End') continue;
      expectFewRepeats(journal);
      const stored = journal.filter((entry) => entry.kind === 'Checkpoint' && entry.refused === undefined);
      const bytes = lines.reduce((sum, line) => sum + line.length, 0);
      const step = bytes > EVERY_CHECKPOINT_BYTES ? 5 : 1;
      for (let afterCheckpoints = 0; afterCheckpoints <= stored.length; afterCheckpoints += step) {
        await expectSameEnd(journal, adapter, afterCheckpoints);
        replays += 1;
      }
    }
    return replays;
  }
}

async function expectSameEnd(
  journal: readonly JournalEntry[],
  adapter: Model,
  afterCheckpoints: number,
): Promise<void> {
  const replay = await replayLoop(journal, { adapter, afterCheckpoints });
  const recorded = journal.flatMap((entry) => (entry.kind === 'Checkpoint' ? [entry.state] : []));
  const where = `replayed after ${afterCheckpoints} checkpoints`;
  expect(replay.unused, where).toEqual([]);
  expectSame(replay.result, replay.recorded, where);
  // Each holds what the ones before it held: after the first replay the last one tells all.
  const compared = afterCheckpoints === 0 ? 0 : -1;
  expectSame(replay.checkpoints.slice(compared), recorded.slice(afterCheckpoints).slice(compared), where);
}

/** Megabytes are compared as text, and only told apart in detail when they differ. */
function expectSame(actual: unknown, expected: unknown, where: string): void {
  const [one, other] = [untimed(actual), untimed(expected)];
  if (one !== other) expect(JSON.parse(one), where).toEqual(JSON.parse(other));
}

/** The replay's clock is its own. */
function untimed(value: unknown): string {
  return JSON.stringify(value, (key, item: unknown) => (key === 'ts' ? '' : item));
}

/** Killed between two checkpoints, what was done since the first is done again. */
function expectFewRepeats(journal: readonly JournalEntry[]): void {
  const begin = journal.find((entry) => entry.kind === 'Begin');
  let [answers, alone, sideBySide] = [0, 0, 0];
  for (const entry of journal) {
    if (entry.kind === 'Answer') answers += 1;
    if (entry.kind === 'Tool' && begin?.concurrent.includes(entry.call.name)) sideBySide += 1;
    else if (entry.kind === 'Tool') alone += 1;
    expect(answers, 'model calls that a kill repeats').toBeLessThanOrEqual(1);
    expect(alone + Math.min(1, sideBySide), 'commands, or groups of reads, that a kill repeats').toBeLessThan(
      2,
    );
    if (entry.kind === 'Checkpoint') [answers, alone, sideBySide] = [0, 0, 0];
  }
}

async function keep(lines: readonly string[], index: number): Promise<void> {
  if (JOURNALS_DIRECTORY === undefined) return;
  await mkdir(JOURNALS_DIRECTORY, { recursive: true });
  const name = `${expect.getState().currentTestName}-${index}`.replace(/[^\w-]+/g, '_').slice(0, 150);
  await writeFile(join(JOURNALS_DIRECTORY, `${name}.jsonl`), `${lines.join('\n')}\n`);
}
