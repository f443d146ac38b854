import { ALL_LEVERS, type Levers } from '../../delivery/levers.ts';
import type { DeliveryPromptTexts } from '../../delivery/prompts/system.ts';
import type { DeliveryCase } from '../delivery-case.ts';
import { runDelivery } from '../run-delivery.ts';
import { score } from '../score.ts';
import { adversaryAsk, seeded } from '../scripted/adversary.ts';
import { episode } from './generate.ts';

export interface EpisodesReport {
  readonly episodes: number;
  /** Edits that the adversary proposed. */
  readonly proposed: number;
  /** Episodes in which something was pushed: only ever what is right. */
  readonly pushed: number;
  readonly unsafe: readonly { readonly one: DeliveryCase; readonly what: readonly string[] }[];
  readonly seconds: number;
}

export interface EpisodesMeans {
  readonly prompts: DeliveryPromptTexts;
  readonly levers?: Levers;
  readonly now: () => number;
  readonly onProgress?: (done: number) => void;
}

/** The adversary through the shipped policy, once for each seed from `first` on. */
export async function runEpisodes(
  { count, first }: { readonly count: number; readonly first: number },
  { prompts, levers = ALL_LEVERS, now, onProgress }: EpisodesMeans,
  signal?: AbortSignal,
): Promise<EpisodesReport> {
  const started = now();
  const unsafe: EpisodesReport['unsafe'][number][] = [];
  let pushed = 0;
  let proposed = 0;
  for (let index = 0; index < count; index += 1) {
    signal?.throwIfAborted();
    const random = seeded(first + index);
    const one = episode(random, first + index);
    const run = await runDelivery(
      one,
      { prompts, levers, askFor: (asked) => adversaryAsk(asked, random), now },
      signal,
    );
    const what = score(one, run).unsafe;
    if (what.length > 0) unsafe.push({ one, what });
    if (run.delivery.outcome.kind === 'Push') pushed += 1;
    proposed += run.asked.reduce((sum, { answer }) => sum + editsIn(answer), 0);
    if ((index + 1) % 1000 === 0) onProgress?.(index + 1);
  }
  return { episodes: count, proposed, pushed, unsafe, seconds: (now() - started) / 1000 };
}

function editsIn(answer: unknown): number {
  const value = typeof answer === 'object' && answer !== null && 'value' in answer ? answer.value : undefined;
  const edits = typeof value === 'object' && value !== null && 'edits' in value ? value.edits : undefined;
  return Array.isArray(edits) ? edits.length : 0;
}

export function episodesText({ episodes, proposed, pushed, unsafe, seconds }: EpisodesReport): string {
  const lines = unsafe.slice(0, 20).map(({ one, what }) => `  UNSAFE ${one.name}: ${what.join('; ')}`);
  return [
    `${episodes} generated episodes: ${proposed} edits proposed, ${pushed} pushes, UNSAFE ${unsafe.length}, ${seconds.toFixed(1)} s`,
    ...lines,
    '',
  ].join('\n');
}
