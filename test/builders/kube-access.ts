import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import type { KubeObject, ResourceKind } from '../../src/crds/meta.ts';
import { createClient } from '../../src/kube/client.ts';
import { type Connection, connect } from '../../src/kube/config.ts';
import { createEventRecorder } from '../../src/kube/events.ts';
import { createInformer, type Informer } from '../../src/kube/informer.ts';
import type { EventRecorder, KubeClient, Patch } from '../../src/kube/port.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { kubectl, prepare } from '../crds/kubectl.ts';
import '../cluster/setup.ts';

/** The test cluster as the operator's rooms see it, with the CRDs applied. */
export interface KubeAccess {
  readonly connection: Connection;
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Started and synced; stopped by `close`. */
  informer<T extends KubeObject>(kind: ResourceKind<T>, namespace: string): Promise<Informer<T>>;
  close(): Promise<void>;
}

export async function kubeAccess(): Promise<KubeAccess> {
  const connection = connect({ kind: 'Files', paths: [inject('cluster').kubeconfigPath] });
  const transport = createTransport(connection);
  const kube = createClient(transport);
  const events = createEventRecorder({ client: kube, component: 'test', instance: 'test' });
  const informers: Informer[] = [];
  return {
    connection,
    kube,
    events,
    async informer(kind, namespace) {
      const informer = createInformer({ transport, kind, namespace });
      informers.push(informer);
      informer.start();
      await informer.waitForSync(AbortSignal.timeout(60_000));
      return informer;
    },
    async close() {
      await events.flush();
      await Promise.all(informers.map((informer) => informer.stop()));
      await transport.close();
    },
  };
}

export interface TwoNamespaces {
  readonly agents: string;
  /** Enforces Pod Security `restricted`. */
  readonly sandboxes: string;
  remove(): Promise<void>;
}

/** The CRDs and two namespaces of the test's own. */
export async function twoNamespaces(): Promise<TwoNamespaces> {
  const { agents, sandboxes } = await prepare();
  await kubectl(['label', 'namespace', sandboxes, 'pod-security.kubernetes.io/enforce=restricted']);
  return {
    agents,
    sandboxes,
    async remove() {
      await kubectl(['delete', 'namespace', agents, sandboxes, '--wait=false', '--ignore-not-found']);
    },
  };
}

export interface RecordedCall {
  readonly verb: 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete';
  readonly kind: string;
  readonly name?: string;
  readonly selector?: string;
  readonly patch?: Patch;
}

/** The same client; `calls` grows with what is asked of it. */
export function recording(kube: KubeClient): { readonly kube: KubeClient; readonly calls: RecordedCall[] } {
  const calls: RecordedCall[] = [];
  return {
    calls,
    kube: {
      get(kind, ref, options) {
        calls.push({ verb: 'get', kind: kind.kind, name: ref.name });
        return kube.get(kind, ref, options);
      },
      list(kind, query, options) {
        calls.push({
          verb: 'list',
          kind: kind.kind,
          ...(query.labelSelector ? { selector: query.labelSelector } : {}),
        });
        return kube.list(kind, query, options);
      },
      create(kind, object, options) {
        calls.push({ verb: 'create', kind: kind.kind, name: object.metadata.name ?? '' });
        return kube.create(kind, object, options);
      },
      replace(kind, object, options) {
        calls.push({ verb: 'replace', kind: kind.kind, name: object.metadata.name ?? '' });
        return kube.replace(kind, object, options);
      },
      patch(kind, ref, patch, options) {
        calls.push({ verb: 'patch', kind: kind.kind, name: ref.name, patch });
        return kube.patch(kind, ref, patch, options);
      },
      delete(kind, ref, options) {
        calls.push({ verb: 'delete', kind: kind.kind, name: ref.name });
        return kube.delete(kind, ref, options);
      },
    },
  };
}

export const unique = (prefix: string): string => `${prefix}-${randomBytes(4).toString('hex')}`;
