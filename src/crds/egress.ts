import { ANNOTATIONS, type KubeObject } from './meta.ts';

/** Value of ANNOTATIONS.egressProbe. */
export const PROBE_DISABLED = 'disabled';

/** The other one: a sandbox that belongs to a run from its beginning, and is handed over once the probe took this away. */
export const PROBE_AWAITED = 'awaited';

export const awaitsProof = ({ metadata: { annotations } }: KubeObject): boolean =>
  annotations?.[ANNOTATIONS.egressProbe] === PROBE_AWAITED;

/**
 * Whether the sandbox may be handed out as far as its network is concerned: shown to reach none, and that not too
 * long ago, or of a pool that trusts its cluster. What is missing or unreadable counts as not proven.
 */
export function isEgressProven(object: KubeObject, now: Date): boolean {
  const { annotations } = object.metadata;
  if (annotations?.[ANNOTATIONS.egressOpen] !== undefined) return false;
  return annotations?.[ANNOTATIONS.egressProbe] === PROBE_DISABLED || carriesProof(object, now);
}

/** Whether it was shown to reach no network, and that not too long ago. */
export function carriesProof({ metadata: { annotations } }: KubeObject, now: Date): boolean {
  if (annotations?.[ANNOTATIONS.egressOpen] !== undefined) return false;
  return Date.parse(annotations?.[ANNOTATIONS.egressBlockedUntil] ?? '') > now.getTime();
}
