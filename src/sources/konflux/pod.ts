import { z } from 'zod';
import { HttpError } from '../../http/client.ts';
import type { KonfluxAccess, KubeApi } from './access.ts';
import { Gaps, merged } from './merged.ts';
import { SHA_LABELS } from './scope.ts';

export type ContainerState = 'Waiting' | 'Running' | 'Ended' | 'Unknown';

/** A pod whose log may be read: it belongs to the run's commit. */
export interface KnownPod {
  readonly name: string;
  /** In the order in which they run. */
  readonly containers: readonly { readonly name: string; readonly state: ContainerState }[];
  /** Whether the cluster still has it. */
  readonly isLive: boolean;
  /** Why it ended as a whole, where it says so: `Evicted: The node was low on resource`. */
  readonly ending?: string;
}

export type PodFound =
  | { readonly kind: 'Known'; readonly pod: KnownPod }
  /** It exists, and belongs to another commit. */
  | { readonly kind: 'Foreign' }
  /** Nobody knows it. */
  | { readonly kind: 'Missing' }
  /** Somebody who might know it could not be asked. */
  | { readonly kind: 'Unclear'; readonly message: string };

/**
 * Finds a pod and proves that it belongs to the commit: by the label on the pod, or on the TaskRun that owns it, or on
 * the PipelineRun that owns that, owners named by uid; for a pod that is gone everywhere by a TaskRun of the commit
 * that names it as its own. In the cluster first, whose state is the newer.
 */
export async function findPod(
  access: KonfluxAccess,
  name: string,
  sha: string,
  signal: AbortSignal,
): Promise<PodFound> {
  const gaps = new Gaps();
  const reader = new ObjectReader(access, gaps, signal);
  const found = await reader.read(`/api/v1/namespaces/${access.address.namespace}/pods/${name}`);
  if (found !== undefined) {
    const pod = Pod.parse(found.object);
    if (await belongs(reader, pod.metadata, sha)) return { kind: 'Known', pod: known(pod, found.isLive) };
    return gaps.messages.length === 0 ? { kind: 'Foreign' } : unclear(gaps);
  }
  const named = await namedByTaskRun(access, name, sha, signal, gaps);
  if (named !== undefined) return { kind: 'Known', pod: named };
  return gaps.messages.length === 0 ? { kind: 'Missing' } : unclear(gaps);
}

const unclear = (gaps: Gaps): PodFound => ({ kind: 'Unclear', message: gaps.text() ?? '' });

const Metadata = z.object({
  name: z.string(),
  uid: z.string().optional(),
  labels: z.record(z.string(), z.string()).nullish(),
  ownerReferences: z.array(z.object({ kind: z.string(), name: z.string(), uid: z.string() })).nullish(),
});
type Metadata = z.infer<typeof Metadata>;
const Owned = z.object({ metadata: Metadata });

const Containers = z.array(z.object({ name: z.string() })).nullish();
const Statuses = z
  .array(
    z.object({
      name: z.string(),
      state: z
        .object({ waiting: z.unknown(), running: z.unknown(), terminated: z.unknown() })
        .partial()
        .nullish(),
    }),
  )
  .nullish();
const Pod = z.object({
  metadata: Metadata,
  spec: z.object({ initContainers: Containers, containers: Containers }),
  status: z
    .object({
      reason: z.string().nullish(),
      message: z.string().nullish(),
      initContainerStatuses: Statuses,
      containerStatuses: Statuses,
    })
    .nullish(),
});
type Pod = z.infer<typeof Pod>;

function known({ metadata, spec, status }: Pod, isLive: boolean): KnownPod {
  const states = new Map(
    [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map((one) => [
      one.name,
      stateOf(one.state),
    ]),
  );
  const ending = [status?.reason, status?.message].filter(Boolean).join(': ');
  return {
    name: metadata.name,
    containers: [...(spec.initContainers ?? []), ...(spec.containers ?? [])].map((container) => ({
      name: container.name,
      state: states.get(container.name) ?? 'Unknown',
    })),
    isLive,
    ...(ending === '' ? {} : { ending }),
  };
}

type Status = NonNullable<z.infer<typeof Statuses>>[number];

function stateOf(state: Status['state']): ContainerState {
  if (state?.terminated) return 'Ended';
  if (state?.running) return 'Running';
  return state?.waiting ? 'Waiting' : 'Unknown';
}

/** Reads single objects from whoever has them; who fails is a gap. */
class ObjectReader {
  readonly #access: KonfluxAccess;
  readonly #gaps: Gaps;
  readonly #signal: AbortSignal;

  constructor(access: KonfluxAccess, gaps: Gaps, signal: AbortSignal) {
    this.#access = access;
    this.#gaps = gaps;
    this.#signal = signal;
  }

  get namespace(): string {
    return this.#access.address.namespace;
  }

  async read(path: string): Promise<{ readonly object: unknown; readonly isLive: boolean } | undefined> {
    const { cluster, archive } = this.#access;
    const live = await this.#readFrom(cluster, path);
    if (live !== undefined) return { object: live, isLive: true };
    const kept = archive && (await this.#readFrom(archive, path));
    return kept === undefined ? undefined : { object: kept, isLive: false };
  }

  async #readFrom(api: KubeApi, path: string): Promise<unknown> {
    try {
      return await api.read(path, this.#signal);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      this.#gaps.messages.push(`${api.name} could not be asked (${error.message}).`);
      return undefined;
    }
  }
}

const OWNERS: Readonly<Record<string, string>> = { TaskRun: 'taskruns', PipelineRun: 'pipelineruns' };

async function belongs(reader: ObjectReader, metadata: Metadata, sha: string): Promise<boolean> {
  if (SHA_LABELS.some((label) => metadata.labels?.[label] === sha)) return true;
  for (const { kind, name, uid } of metadata.ownerReferences ?? []) {
    const plural = OWNERS[kind];
    if (plural === undefined) continue;
    const path = `/apis/tekton.dev/v1/namespaces/${reader.namespace}/${plural}/${encodeURIComponent(name)}`;
    const owner = Owned.safeParse((await reader.read(path))?.object);
    // Of the same name another one may have come since.
    if (!owner.success || owner.data.metadata.uid !== uid) continue;
    if (await belongs(reader, owner.data.metadata, sha)) return true;
  }
  return false;
}

const Step = z.object({ container: z.string(), terminated: z.unknown() });
const TaskRunStatus = z.object({
  podName: z.string().nullish(),
  steps: z.array(Step).nullish(),
  sidecars: z.array(Step).nullish(),
});
const TaskRun = z.object({
  status: TaskRunStatus.extend({ retriesStatus: z.array(TaskRunStatus).nullish() }).nullish(),
});

/** What the TaskRuns of the commit say of a pod, each try of theirs included. */
async function namedByTaskRun(
  access: KonfluxAccess,
  name: string,
  sha: string,
  signal: AbortSignal,
  gaps: Gaps,
): Promise<KnownPod | undefined> {
  const mention = Buffer.from(JSON.stringify(name));
  for await (const { json } of merged(access, { resource: 'taskruns', sha, signal }, gaps)) {
    if (Buffer.from(json.buffer, json.byteOffset, json.length).indexOf(mention) === -1) continue;
    const parsed = TaskRun.safeParse(JSON.parse(UTF8.decode(json)));
    if (!parsed.success || !parsed.data.status) continue;
    const { retriesStatus, ...last } = parsed.data.status;
    const run = [last, ...(retriesStatus ?? [])].find(({ podName }) => podName === name);
    if (run === undefined) continue;
    const containers = [...(run.steps ?? []), ...(run.sidecars ?? [])];
    return {
      name,
      containers: containers.map(({ container }) => ({ name: container, state: 'Ended' })),
      isLive: false,
    };
  }
  return undefined;
}

const UTF8 = new TextDecoder();
