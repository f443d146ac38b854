import { isKubeError } from './errors.ts';
import { LEASE, type Lease } from './kinds.ts';
import type { CallOptions, KubeClient, ObjectRef } from './port.ts';

/** RFC 3339 with microseconds, as Leases have it. */
export function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}

/** Creates the Lease; undefined when somebody else was faster. */
export async function createLease(
  client: KubeClient,
  lease: Lease,
  call: CallOptions,
): Promise<Lease | undefined> {
  try {
    return await client.create(LEASE, lease, call);
  } catch (error) {
    if (isKubeError(error, 'AlreadyExists')) return undefined;
    throw error;
  }
}

/** Writes the spec over the Lease as it was read; undefined when it is not that any more. */
export async function replaceLease(
  client: KubeClient,
  read: Lease,
  spec: NonNullable<Lease['spec']>,
  call: CallOptions,
): Promise<Lease | undefined> {
  try {
    return await client.replace(LEASE, { ...read, spec }, call);
  } catch (error) {
    if (isKubeError(error, 'Conflict', 'NotFound')) return undefined;
    throw error;
  }
}

export function readLease(client: KubeClient, ref: ObjectRef, call: CallOptions): Promise<Lease | undefined> {
  return client.get(LEASE, ref, call);
}
