import { createHash } from 'node:crypto';
import { awaitsProof } from '../../crds/egress.ts';
import { labelValue } from '../../crds/labels.ts';
import { ANNOTATIONS, type KubeObject } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Clock } from '../../kube/clock.ts';
import { isKubeError, KubeError } from '../../kube/errors.ts';
import { NETWORK_POLICY } from '../../kube/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import type { SandboxRequest } from '../port.ts';
import type { Claimable } from './claimable.ts';
import { ownership } from './patch.ts';

/** Sandboxes that are made for one run, where a pool has none that stands by and says `claim.createOnEmpty`. */
export interface OnEmpty<T extends KubeObject> {
  /** What the run waits for, in words; undefined where nothing is made for runs. Throws KubeError. */
  make(pool: SandboxPool, request: SandboxRequest): Promise<string | undefined>;
  /** Whether the run has one that is being made, as far as this process knows. */
  isMaking(runUid: string): boolean;
  /** To be told of what the run owns: one that is being made stays, and is known from now on. */
  keeps(owned: T, request: SandboxRequest): boolean;
  forget(runUid: string): void;
}

export interface OnEmptyOptions<T extends KubeObject> {
  readonly what: Claimable<T>;
  readonly kube: KubeClient;
  readonly clock: Clock;
  /** A sandbox of the pool, without name and owner. Left out: nothing is made for runs. */
  readonly template?: (pool: SandboxPool) => T | undefined;
  /** How long an image that cannot be pulled may still turn out well. */
  readonly pullPatienceMs: number;
}

/** What was refused, or broke, is tried again after this: a quota is not freed, nor an image pushed, any faster. */
const PAUSE_MS = 5_000;

export function onEmpty<T extends KubeObject>(options: OnEmptyOptions<T>): OnEmpty<T> {
  const { what, kube, clock, template } = options;
  const making = new Map<string, string>();
  const paused = new Map<string, { readonly untilMs: number; readonly why: string }>();

  const pause = (runUid: string, why: string): string => {
    making.delete(runUid);
    paused.set(runUid, { untilMs: clock.monotonicMs() + PAUSE_MS, why });
    return why;
  };

  return {
    async make(pool, request) {
      const { runUid } = request;
      const name = making.get(runUid);
      if (name !== undefined) return `${what.kind.kind} ${name} is being made for this run`;
      const waits = paused.get(runUid);
      if (waits !== undefined && clock.monotonicMs() < waits.untilMs) return waits.why;
      const object = template?.(pool);
      if (object === undefined) return undefined;
      if (!(await isShut(kube, pool)))
        return 'none is made for this run before the pool’s NetworkPolicy is there';
      const made = ownedBy(object, pool, request, clock.now());
      try {
        await kube.create(what.kind, made);
      } catch (error) {
        // Made by an earlier holder, or before its answer was lost: what the run owns is looked at next time.
        if (!isKubeError(error, 'AlreadyExists')) {
          if (!(error instanceof KubeError) || error.retryable) throw error;
          return pause(runUid, `none could be made for this run: ${error.message}`);
        }
      }
      paused.delete(runUid);
      making.set(runUid, made.metadata.name ?? '');
      return `${what.kind.kind} ${made.metadata.name} is being made for this run`;
    },
    isMaking: (runUid) => making.has(runUid),
    keeps(owned, { runUid }) {
      const { annotations, deletionTimestamp, name = '', creationTimestamp = '' } = owned.metadata;
      if (annotations?.[ANNOTATIONS.onEmpty] === undefined || deletionTimestamp !== undefined) return false;
      const problem = what.problem(owned);
      const ageMs = clock.now().getTime() - Date.parse(creationTimestamp);
      const mayMend =
        problem === undefined ||
        problem.reason === 'Unschedulable' ||
        (problem.kind === 'Pull' && ageMs < options.pullPatienceMs);
      if (!mayMend) {
        pause(runUid, `the one that was made for this run broke: ${problem.reason}: ${problem.message}`);
        return false;
      }
      making.set(runUid, name);
      return true;
    },
    forget(runUid) {
      making.delete(runUid);
      paused.delete(runUid);
    },
  };
}

/** Whether commands may be run in it: it runs, and is not one whose isolation is still to be shown. */
export const isReady = <T extends KubeObject>({ isUsable }: Claimable<T>, object: T): boolean =>
  isUsable(object) &&
  !awaitsProof(object) &&
  object.metadata.annotations?.[ANNOTATIONS.egressOpen] === undefined;

/** Whether the pool's own NetworkPolicy is there: no sandbox starts before it. */
async function isShut(kube: KubeClient, { metadata }: SandboxPool): Promise<boolean> {
  const policy = await kube.get(NETWORK_POLICY, {
    namespace: metadata.namespace ?? '',
    name: ownedName(metadata),
  });
  return policy?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) ?? false;
}

const ownedName = ({ name = '' }: SandboxPool['metadata']): string => labelValue(name).toLowerCase();

/** The run's from its beginning: a ReplicaSet never counts it. One name for a run, so that there is one at a time. */
function ownedBy<T extends KubeObject>(object: T, pool: SandboxPool, request: SandboxRequest, now: Date): T {
  const { labels, annotations } = ownership(object, request, now);
  const digest = createHash('sha256').update(request.runUid).digest('hex').slice(0, 10);
  return {
    ...object,
    metadata: {
      namespace: request.pool.namespace,
      name: `${ownedName(pool.metadata)}-${digest}`,
      labels: { ...object.metadata.labels, ...labels },
      annotations: { ...object.metadata.annotations, ...annotations, [ANNOTATIONS.onEmpty]: 'true' },
    },
  };
}
