import type { KubeObject, ResourceKind } from '../crds/meta.ts';

export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

export interface ListOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  /** `'0'` answers from the API server's cache; left out: the most recent. */
  readonly resourceVersion?: string;
}

export interface ObjectList<T extends KubeObject> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  readonly continue?: string;
}

export type Patch =
  | { readonly type: 'merge'; readonly body: unknown }
  | { readonly type: 'json'; readonly body: readonly JsonPatchOp[] }
  | {
      readonly type: 'apply';
      readonly body: unknown;
      readonly fieldManager: string;
      readonly force?: boolean;
    };

export type JsonPatchOp =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export interface DeleteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/**
 * The Kubernetes API as the rest of the operator sees it. Every method throws `KubeError` (errors.ts) on a
 * refusal, with the API server's reason; a lost connection is a retryable `KubeError` with reason `Unreachable`.
 */
export interface KubeClient {
  /** Undefined on 404. */
  get<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    options?: CallOptions,
  ): Promise<T | undefined>;
  /** One page. */
  list<T extends KubeObject>(
    kind: ResourceKind<T>,
    query: ListOptions,
    options?: CallOptions,
  ): Promise<ObjectList<T>>;
  create<T extends KubeObject>(kind: ResourceKind<T>, object: T, options?: CallOptions): Promise<T>;
  /** Needs `metadata.resourceVersion`; a stale one is refused with reason `Conflict`. */
  replace<T extends KubeObject>(
    kind: ResourceKind<T>,
    object: T,
    options?: CallOptions & { readonly subresource?: 'status' },
  ): Promise<T>;
  patch<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: CallOptions & { readonly subresource?: 'status' | 'scale' },
  ): Promise<T>;
  /** False when there was nothing to delete. */
  delete(kind: ResourceKind, ref: ObjectRef, options?: DeleteOptions & CallOptions): Promise<boolean>;
}

export interface EventTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
}

/** Kubernetes Events; never throws, a failed write is logged (an Event is a story, not a record). */
export interface EventRecorder {
  record(target: EventTarget, type: 'Normal' | 'Warning', reason: string, message: string): void;
  /** Resolves when what was recorded has been sent or given up; for shutdown. */
  flush(): Promise<void>;
}
