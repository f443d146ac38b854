import { labelSelector, standbyLabels } from '../../crds/labels.ts';
import { type KubeObject, LABELS } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Clock } from '../../kube/clock.ts';
import { LAUNCHER } from '../../kube/kubevirt/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import { claimable } from './candidates.ts';
import type { Claimable } from './claimable.ts';

interface PoolRef {
  readonly namespace: string;
  readonly name: string;
}

/** What the API server and the cache say about pools and their sandboxes. Every method throws KubeError. */
export interface PoolSupply<T extends KubeObject> {
  /**
   * Sandboxes that may be claimed. From the cache when it has some, unless `fresh`: then, or when it has none, from
   * the API server.
   */
  free(pool: PoolRef, fresh: boolean): Promise<readonly T[]>;
  /** Standby sandboxes, usable or not, at most LIST_EVERY_MS old. */
  standby(pool: PoolRef): Promise<readonly T[]>;
  /** Undefined only when the API server says so now. */
  pool(pool: PoolRef): Promise<SandboxPool | undefined>;
  /** Every one that carries the run's uid, from the API server. */
  owned(runUid: string, namespace: string): Promise<readonly T[]>;
}

/** Many runs that wait for one pool ask the API server together this often. */
const LIST_EVERY_MS = 250;

export function poolSupply<T extends KubeObject>(options: {
  readonly what: Claimable<T>;
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly cached?: (namespace: string) => readonly T[] | undefined;
}): PoolSupply<T> {
  const { what, kube, clock, cached } = options;

  const listStandby = async ({ namespace, name }: PoolRef): Promise<readonly T[]> => {
    const { items } = await kube.list(what.kind, {
      namespace,
      labelSelector: labelSelector(standbyLabels(name)),
    });
    return items;
  };
  const readPool = async ({ namespace, name }: PoolRef): Promise<SandboxPool | undefined> => {
    // A GET's 404 also means that the API server does not serve the kind (yet): a list then is an error.
    const { items } = await kube.list(SANDBOX_POOLS, { namespace, fieldSelector: `metadata.name=${name}` });
    return items[0];
  };
  const standby = shared(listStandby, clock);
  const pool = shared(readPool, clock);

  return {
    async free(ref, fresh) {
      const known = fresh ? [] : claimable(what, cached?.(ref.namespace) ?? [], ref.name, clock.now());
      if (known.length > 0) return known;
      return claimable(what, await (fresh ? listStandby(ref) : standby(ref)), ref.name, clock.now());
    },
    standby,
    pool,
    async owned(runUid, namespace) {
      const { items } = await kube.list(what.kind, {
        namespace,
        labelSelector: labelSelector({ [LABELS.run]: runUid }),
      });
      return items.filter(({ metadata }) => metadata.labels?.[LAUNCHER.label] !== LAUNCHER.value);
    },
  };
}

/** The same answer for all who ask within LIST_EVERY_MS of its request; nothing, failures and absence apart. */
function shared<T>(load: (ref: PoolRef) => Promise<T>, clock: Clock): (ref: PoolRef) => Promise<T> {
  const answers = new Map<string, { readonly at: number; readonly answer: Promise<T> }>();
  return (ref) => {
    const key = `${ref.namespace}/${ref.name}`;
    const known = answers.get(key);
    if (known !== undefined && clock.monotonicMs() - known.at < LIST_EVERY_MS) return known.answer;
    const entry = { at: clock.monotonicMs(), answer: load(ref) };
    answers.set(key, entry);
    const forget = () => {
      if (answers.get(key) === entry) answers.delete(key);
    };
    entry.answer.then((answer) => answer === undefined && forget(), forget);
    return entry.answer;
  };
}
