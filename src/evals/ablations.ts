import { ALL_LEVERS, LEVERS, type Lever, without } from '../delivery/levers.ts';
import type { DeliveryPromptTexts } from '../delivery/prompts/system.ts';
import { columns } from './columns.ts';
import type { DeliveryCase } from './delivery-case.ts';
import { runDelivery } from './run-delivery.ts';
import { score } from './score.ts';
import { sloppyAsk } from './scripted/sloppy.ts';

export interface Ablation {
  readonly lever: Lever;
  readonly with: Tally;
  readonly without: Tally;
}

interface Tally {
  readonly full: number;
  readonly unsafe: number;
  readonly cases: number;
}

/**
 * For each lever the scripted model that errs in its way, once with the lever and once without: that each lever is
 * wired to what it is there for. What it is worth on a real model, the same with `--without` says.
 */
export async function runAblations(
  cases: readonly DeliveryCase[],
  prompts: DeliveryPromptTexts,
  now: () => number,
): Promise<readonly Ablation[]> {
  const ablations: Ablation[] = [];
  for (const lever of LEVERS) {
    const tally = async (levers: typeof ALL_LEVERS): Promise<Tally> => {
      let full = 0;
      let unsafe = 0;
      for (const one of cases) {
        const scored = score(one, await runDelivery(one, { prompts, levers, askFor: sloppyAsk(lever), now }));
        full += scored.full ? 1 : 0;
        unsafe += scored.unsafe.length > 0 ? 1 : 0;
      }
      return { full, unsafe, cases: cases.length };
    };
    ablations.push({ lever, with: await tally(ALL_LEVERS), without: await tally(without(lever)) });
  }
  return ablations;
}

export function ablationText(ablations: readonly Ablation[]): string {
  const shown = ({ full, cases }: Tally): string => `${full}/${cases}`;
  const rows = ablations.map(({ lever, with: on, without: off }, index) => [
    `${index + 1} ${lever}`,
    shown(on),
    String(on.unsafe),
    shown(off),
    String(off.unsafe),
  ]);
  return `${columns([['lever', 'full pass with', 'UNSAFE with', 'full pass without', 'UNSAFE without'], ...rows])}\n`;
}
