import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { backoffMs, type Clock, type Random, sleep, systemClock } from './clock.ts';
import { isKubeError } from './errors.ts';
import { collectionPath, describeRef, objectPath } from './paths.ts';
import type { KubeClient, ListOptions, Patch } from './port.ts';
import { asList, asObject } from './shape.ts';
import type { ApiRequest, Transport } from './transport.ts';

/** Reads are tried this often at the most; writes once: whether a lost answer was a write is the caller's to find out. */
const READ_ATTEMPTS = 4;
/** A server that wants a longer pause is not waited for inside a call: the caller has a queue for that. */
const LONGEST_PAUSE_MS = 3_000;

const PATCH_TYPES: Readonly<Record<Patch['type'], string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** The Kubernetes API over one transport: see KubeClient for what each method promises. */
export function createClient(
  transport: Transport,
  options: { readonly clock?: Clock; readonly random?: Random; readonly timeoutMs?: number } = {},
): KubeClient {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const timeout = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs };

  const write = (request: ApiRequest): Promise<unknown> => transport.json({ ...timeout, ...request });

  async function read(request: ApiRequest): Promise<unknown> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await transport.json({ ...timeout, ...request });
      } catch (error) {
        const again = isKubeError(error) && error.retryable && error.reason !== 'Timeout';
        if (!again || attempt + 1 >= READ_ATTEMPTS) throw error;
        const pause = Math.max(error.retryAfterMs ?? 0, backoffMs(attempt, 100, 1_000, random));
        if (pause > LONGEST_PAUSE_MS) throw error;
        await sleep(clock, pause, request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }

  return {
    async get(kind, ref, call) {
      const where = `GET ${describeRef(kind, ref)}`;
      try {
        const found = await read({ method: 'GET', path: objectPath(kind, ref), where, signal: call?.signal });
        return asObject(kind, found, where);
      } catch (error) {
        if (isKubeError(error, 'NotFound')) return undefined;
        throw error;
      }
    },

    async list(kind, query, call) {
      const where = `LIST ${describeRef(kind, { namespace: query.namespace })}`;
      return asList(kind, await read({ ...listRequest(kind, query), where, signal: call?.signal }), where);
    },

    async create(kind, object, call) {
      const where = `CREATE ${describeRef(kind, object.metadata)}`;
      const path = collectionPath(kind, namespaceFor(kind, object, where));
      return asObject(
        kind,
        await write({ method: 'POST', path, body: object, where, signal: call?.signal }),
        where,
      );
    },

    async replace(kind, object, call) {
      const ref = refOf(object);
      const where = `REPLACE ${describeRef(kind, ref)}${call?.subresource ? `/${call.subresource}` : ''}`;
      if (!object.metadata.resourceVersion) {
        throw new TypeError(`${where}: metadata.resourceVersion is missing; replace only what was read`);
      }
      const path = objectPath(kind, ref, call?.subresource);
      return asObject(
        kind,
        await write({ method: 'PUT', path, body: object, where, signal: call?.signal }),
        where,
      );
    },

    async patch(kind, ref, patch, call) {
      const where = `PATCH ${describeRef(kind, ref)}${call?.subresource ? `/${call.subresource}` : ''}`;
      const answer = await write({
        method: 'PATCH',
        path: objectPath(kind, ref, call?.subresource),
        contentType: PATCH_TYPES[patch.type],
        body: patch.body,
        ...(patch.type === 'apply'
          ? { query: { fieldManager: patch.fieldManager, force: patch.force ? 'true' : undefined } }
          : {}),
        where,
        signal: call?.signal,
      });
      return asObject(kind, answer, where);
    },

    async delete(kind, ref, call) {
      const where = `DELETE ${describeRef(kind, ref)}`;
      const preconditions = {
        ...(call?.uid === undefined ? {} : { uid: call.uid }),
        ...(call?.resourceVersion === undefined ? {} : { resourceVersion: call.resourceVersion }),
      };
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(call?.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: call.gracePeriodSeconds }),
        ...(call?.propagationPolicy === undefined ? {} : { propagationPolicy: call.propagationPolicy }),
        ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
      };
      try {
        await write({ method: 'DELETE', path: objectPath(kind, ref), body, where, signal: call?.signal });
        return true;
      } catch (error) {
        if (isKubeError(error, 'NotFound')) return false;
        throw error;
      }
    },
  };
}

/** The request of one page, without its `where`. */
export function listRequest(
  kind: ResourceKind,
  query: ListOptions,
): Pick<ApiRequest, 'method' | 'path' | 'query'> {
  return {
    method: 'GET',
    path: collectionPath(kind, query.namespace),
    query: {
      labelSelector: query.labelSelector,
      fieldSelector: query.fieldSelector,
      limit: query.limit === undefined ? undefined : String(query.limit),
      continue: query.continue,
      // The API refuses a resourceVersion beside a continue token, which carries its own.
      resourceVersion: query.continue === undefined ? query.resourceVersion : undefined,
    },
  };
}

function refOf(object: KubeObject): { readonly namespace?: string; readonly name: string } {
  const { name, namespace } = object.metadata;
  if (!name) throw new TypeError(`${object.kind}: metadata.name is missing`);
  return namespace === undefined ? { name } : { namespace, name };
}

function namespaceFor(kind: ResourceKind, object: KubeObject, where: string): string | undefined {
  if (!kind.namespaced) return undefined;
  if (!object.metadata.namespace) throw new TypeError(`${where}: metadata.namespace is missing`);
  return object.metadata.namespace;
}
