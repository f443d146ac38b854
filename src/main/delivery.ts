import type { DeliveryMeans } from '../controllers/run/deps.ts';
import type { Resolved } from '../settings/references.ts';

/** What runs on chart bumps read and write with. */
export async function joinDelivery(): Promise<Resolved<DeliveryMeans>> {
  return {
    kind: 'Invalid',
    reason: 'NotFound',
    message: 'spec.delivery: this version of the operator does not repair chart bumps yet',
  };
}
