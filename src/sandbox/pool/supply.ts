import { labelSelector, standbyLabels } from '../../crds/labels.ts';
import { LABELS } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Clock } from '../../kube/clock.ts';
import { POD, type Pod } from '../../kube/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import { claimable } from './candidates.ts';

interface PoolRef {
  readonly namespace: string;
  readonly name: string;
}

/** What the API server and the cache say about pools and their pods. Every method throws KubeError. */
export interface PoolSupply {
  /**
   * Pods that may be claimed. From the cache when it has some, unless `fresh`: then, or when it has none, from
   * the API server.
   */
  free(pool: PoolRef, fresh: boolean): Promise<readonly Pod[]>;
  /** Standby pods, usable or not, at most LIST_EVERY_MS old. */
  standby(pool: PoolRef): Promise<readonly Pod[]>;
  /** Undefined only when the API server says so now. */
  pool(pool: PoolRef): Promise<SandboxPool | undefined>;
  /** Every pod that carries the run's uid, from the API server. */
  owned(runUid: string, namespace: string): Promise<readonly Pod[]>;
}

/** Many runs that wait for one pool ask the API server together this often. */
const LIST_EVERY_MS = 250;

export function poolSupply(options: {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly cachedPods?: (namespace: string) => readonly Pod[] | undefined;
}): PoolSupply {
  const { kube, clock, cachedPods } = options;

  const listStandby = async ({ namespace, name }: PoolRef): Promise<readonly Pod[]> => {
    const { items } = await kube.list(POD, { namespace, labelSelector: labelSelector(standbyLabels(name)) });
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
      const cached = fresh ? [] : claimable(cachedPods?.(ref.namespace) ?? [], ref.name);
      if (cached.length > 0) return cached;
      return claimable(await (fresh ? listStandby(ref) : standby(ref)), ref.name);
    },
    standby,
    pool,
    async owned(runUid, namespace) {
      const { items } = await kube.list(POD, {
        namespace,
        labelSelector: labelSelector({ [LABELS.run]: runUid }),
      });
      return items;
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
