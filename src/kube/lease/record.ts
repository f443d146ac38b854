import { GROUP } from '../../crds/meta.ts';
import { isKubeError } from '../errors.ts';
import { LEASE, type Lease } from '../kinds.ts';
import type { CallOptions, JsonPatchOp, KubeClient, ObjectRef } from '../port.ts';

/** On every replica's Lease; its value is the replica. */
export const REPLICA_LABEL = `${GROUP}/replica`;

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

/** A Lease as one start of a process holds it. */
export interface HeldLease {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  /** `leaseTransitions`. */
  readonly incarnation: number;
}

/**
 * Changes a Lease that is held, whatever else was written to it meanwhile, in one request. False when it is held by
 * somebody else, or is gone. Throws KubeError.
 */
export async function patchHeld(
  client: KubeClient,
  { namespace, name, holder, incarnation }: HeldLease,
  changes: Partial<NonNullable<Lease['spec']>>,
  call: CallOptions,
): Promise<boolean> {
  const body: readonly JsonPatchOp[] = [
    { op: 'test', path: '/spec/holderIdentity', value: holder },
    { op: 'test', path: '/spec/leaseTransitions', value: incarnation },
    ...Object.entries(changes).map(
      ([field, value]) => ({ op: 'add', path: `/spec/${field}`, value }) as const,
    ),
  ];
  try {
    await client.patch(LEASE, { namespace, name }, { type: 'json', body }, call);
    return true;
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'NotFound')) return false;
    throw error;
  }
}
