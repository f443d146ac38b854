import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { LABELS } from '../../src/crds/meta.ts';

/** A pod as one write left it. */
export interface PodWrite {
  readonly kind: 'PodWrite';
  /** Orders all writes of the API server. */
  readonly version: bigint;
  readonly uid: string;
  readonly name: string;
  /** uid of the run that it belongs to; undefined for one that stands by or lingers. */
  readonly owner: string | undefined;
  readonly session: string | undefined;
  readonly role: string | undefined;
  /** It is being deleted, or is gone. */
  readonly going: boolean;
  readonly atMs: number;
  readonly tookMs: number;
}

export type AuditFact =
  | PodWrite
  /** A write of a pod that was refused because it had changed. */
  | { readonly kind: 'Conflict'; readonly pod: string }
  | { readonly kind: 'Command'; readonly pod: string; readonly atMs: number }
  | { readonly kind: 'RunMade'; readonly uid: string; readonly atMs: number };

const metadata = z.object({
  uid: z.string(),
  name: z.string(),
  resourceVersion: z.string().optional(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
});

const auditEvent = z.object({
  verb: z.string(),
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
  objectRef: z
    .object({ resource: z.string(), subresource: z.string().optional(), name: z.string().optional() })
    .optional(),
  responseStatus: z.object({ code: z.number().optional() }).optional(),
  responseObject: z.object({ kind: z.string().optional(), metadata: metadata.partial() }).optional(),
});

/** The facts of an audit log that was written under OWNERSHIP_POLICY, in the order of its lines. */
export async function readAuditLog(file: string): Promise<readonly AuditFact[]> {
  const facts: AuditFact[] = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (line === '') continue;
    const fact = factOf(line);
    if (fact !== undefined) facts.push(fact);
  }
  return facts;
}

/** Undefined for a line that says nothing of ownership. Throws for one that is no audit event. */
export function factOf(line: string): AuditFact | undefined {
  const event = auditEvent.parse(JSON.parse(line));
  const { verb, objectRef, responseStatus, responseObject } = event;
  const code = responseStatus?.code ?? 0;
  const atMs = milliseconds(event.requestReceivedTimestamp);
  const what = objectRef?.subresource
    ? `${objectRef.resource}/${objectRef.subresource}`
    : objectRef?.resource;
  if (what === 'pods/exec')
    return code >= 400 ? undefined : { kind: 'Command', pod: objectRef?.name ?? '', atMs };
  const made = metadata.safeParse(responseObject?.metadata).data;
  if (what === 'agentruns') {
    const created = code === 201 && made !== undefined;
    return created ? { kind: 'RunMade', uid: made.uid, atMs } : undefined;
  }
  if (code === 409 && what === 'pods' && verb === 'patch')
    return { kind: 'Conflict', pod: objectRef?.name ?? '' };
  if (code >= 300 || made === undefined || responseObject?.kind !== 'Pod') return undefined;
  const { labels = {} } = made;
  const role = labels[LABELS.role];
  return {
    kind: 'PodWrite',
    version: BigInt(made.resourceVersion ?? 0),
    uid: made.uid,
    name: made.name,
    role,
    owner: role === 'active' ? labels[LABELS.run] : undefined,
    session: labels[LABELS.session],
    going: verb === 'delete' || made.deletionTimestamp !== undefined,
    atMs,
    tookMs: milliseconds(event.stageTimestamp) - atMs,
  };
}

/** RFC 3339 with microseconds, which Date cuts. */
function milliseconds(time: string): number {
  const micro = /\.\d{3}(\d{1,3})/.exec(time)?.[1] ?? '';
  return Date.parse(time) + Number(`0.${micro || '0'}`);
}
