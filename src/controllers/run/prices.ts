import { listPrices, type ModelPrice } from '../../agent/pricing.ts';
import type { AgentWorkflowSpec } from '../../crds/agent-workflow.ts';

/**
 * What a run's model calls cost: what the workflow says of its model, and list prices for the rest (a run may ask
 * for another model). `now` in milliseconds.
 */
export function pricesOf(
  { name, pricing, vertex }: AgentWorkflowSpec['model'],
  now: number,
): readonly ModelPrice[] {
  const listed = listPrices(now, vertex?.location);
  if (pricing === undefined) return listed;
  const input = Number(pricing.input);
  const own: ModelPrice = {
    prefix: name,
    input,
    output: Number(pricing.output),
    // Without a price of its own the cache saves nothing that could be relied on.
    cacheRead: Number(pricing.cacheRead ?? pricing.input),
    cacheWrite: Number(pricing.cacheWrite ?? pricing.input),
  };
  return [own, ...listed];
}
