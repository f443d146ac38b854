import { expect, it } from 'vitest';
import { ALL_LEVERS, without } from '../../delivery/levers.ts';
import { loadDeliveryPrompts } from '../../delivery/prompts/files.ts';
import { runDelivery } from '../run-delivery.ts';
import { score } from '../score.ts';
import { seeded } from '../scripted/adversary.ts';
import { perfectAsk } from '../scripted/perfect.ts';
import { episode } from './generate.ts';
import { episodesText, runEpisodes } from './run-episodes.ts';

const prompts = await loadDeliveryPrompts();
const now = () => performance.now();

it('the adversary gets nothing wrong through the shipped policy', async () => {
  const report = await runEpisodes({ count: 120, first: 1 }, { prompts, now });
  expect(report.unsafe.map(({ one, what }) => [one.name, what])).toEqual([]);
  expect(report.proposed).toBeGreaterThan(100);
  expect(episodesText(report)).toMatch(/^120 generated episodes: \d+ edits proposed, \d+ pushes, UNSAFE 0/);
});

it('it does get things through without lever 5: what it proposes is plausible', async () => {
  const report = await runEpisodes({ count: 30, first: 1 }, { prompts, now, levers: without('direction') });
  expect(report.unsafe.length).toBeGreaterThan(5);
});

it('what is right gets full marks in the same episodes', async () => {
  const kinds = new Set<string>();
  for (let index = 1; index <= 30; index += 1) {
    const one = episode(seeded(index), index);
    const run = await runDelivery(one, { prompts, levers: ALL_LEVERS, askFor: perfectAsk, now });
    expect([one.name, score(one, run)]).toMatchObject([one.name, { full: true, faults: [] }]);
    kinds.add(run.delivery.outcome.kind);
  }
  expect(kinds).toEqual(new Set(['Push', 'Escalate']));
});

it('the same seed makes the same episode', () => {
  expect(episode(seeded(7), 7)).toEqual(episode(seeded(7), 7));
  expect(episode(seeded(7), 7)).not.toEqual(episode(seeded(8), 7));
});
