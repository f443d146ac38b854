import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type ResourceEvent, type ResourceMeta, ResourceMetaImpl } from '@dot-i/k8s-operator';
import type { V1CustomResourceDefinitionVersion } from '@kubernetes/client-node';
import { parse } from 'yaml';
import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { applyObject } from './apply.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { type Controller, type ControllerOptions, createController, from } from './controller.ts';
import { Deliveries, toPackageObject } from './deliveries.ts';
import { createInformer, type Informer, type InformerOptions } from './informer.ts';
import { CUSTOM_RESOURCE_DEFINITION, type CustomResourceDefinition } from './kinds.ts';
import { type Logger, silentLogger } from './log.ts';
import { collectionPath, kindId } from './paths.ts';
import type { KubeClient } from './port.ts';
import { isRecord } from './shape.ts';
import type { Transport } from './transport.ts';

// By require: what `import` makes of a CommonJS module's default export differs between Node and bundlers.
const operatorPackage: typeof import('@dot-i/k8s-operator') = createRequire(import.meta.url)(
  '@dot-i/k8s-operator',
);
const Operator = operatorPackage.default;

export interface OperatorParts {
  readonly transport: Transport;
  readonly client: KubeClient;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** For the informers of this operator: intervals, mostly for tests. */
  readonly informers?: Pick<
    InformerOptions<KubeObject>,
    'resyncMs' | 'watchSeconds' | 'watchGraceMs' | 'maxBackoffMs'
  >;
}

const FIELD_MANAGER = 'hummingbird-operator';

/**
 * The operator's frame: `@dot-i/k8s-operator` with the parts that do not work on client-node 2 replaced by this
 * room's own (docs/adr/0002). Two ways to use it, also together:
 *
 *     const operator = new HummingbirdOperator({ transport, client, logger });
 *     const runs = operator.informer(AGENT_RUN, { namespace });
 *     operator.control({ name: 'agentrun', sources: [from(runs)], reconcile });
 *     await operator.start();   // informers, then controllers once these have synced
 *     await operator.stop();    // nothing of it runs afterwards; the process goes on
 *
 * or a subclass with `init()` that calls `watchResource`, as the package documents. What differs from the package:
 * a failed write throws a KubeError; a handler that throws is called again after a backoff, with the then current
 * object; handlers of different objects run side by side; nothing ever calls `process.exit`.
 */
export class HummingbirdOperator extends Operator {
  readonly #parts: OperatorParts;
  readonly #log: Logger;
  readonly #informers = new Map<string, Informer<KubeObject>>();
  readonly #controllers: Controller[] = [];
  readonly #kinds = new Map<string, ResourceKind>();
  #state: 'New' | 'Started' | 'Stopped' = 'New';

  constructor(parts: OperatorParts) {
    const log = parts.logger ?? silentLogger;
    super({
      debug: (message) => log.debug({}, message),
      info: (message) => log.info({}, message),
      warn: (message) => log.warn({}, message),
      error: (message) => log.error({}, message),
    });
    this.#parts = parts;
    this.#log = log;
    // The package loads its own from the environment; ours was chosen by the caller.
    this.kubeConfig = parts.transport.connection.kubeConfig;
  }

  /** For subclasses; the operator itself needs none. */
  protected async init(): Promise<void> {}

  /** The informer of a kind in a scope: one, whoever asks. Started by `start`, or at once when that was before. */
  informer<T extends KubeObject>(
    kind: ResourceKind<T>,
    scope: { readonly namespace?: string; readonly labelSelector?: string } = {},
  ): Informer<T> {
    this.#refuseWhenStopped();
    const id = JSON.stringify([kindId(kind), scope.namespace, scope.labelSelector]);
    const known = this.#informers.get(id);
    // Keyed by the kind's identity, so it holds objects of T.
    if (known !== undefined) return known as unknown as Informer<T>;
    const { transport, clock, informers } = this.#parts;
    const informer = createInformer<T>({
      transport,
      kind,
      ...scope,
      ...informers,
      logger: this.#log,
      ...(clock === undefined ? {} : { clock }),
    });
    this.#informers.set(id, informer as unknown as Informer<KubeObject>); // handed out again as T only, see above
    if (this.#state === 'Started') informer.start();
    return informer;
  }

  /** Adds a controller, before `start`; logger and clock are the operator's unless given. */
  control(options: ControllerOptions): Controller {
    this.#refuseWhenStopped();
    const { clock } = this.#parts;
    const controller = createController({
      logger: this.#log,
      ...(clock === undefined ? {} : { clock }),
      ...options,
    });
    this.#controllers.push(controller);
    return controller;
  }

  /** Longest time since the API server answered any informer, milliseconds; for /readyz. 0 without informers. */
  stalenessMs(): number {
    return Math.max(0, ...[...this.#informers.values()].map((informer) => informer.stalenessMs()));
  }

  /** True once every informer holds a complete list. */
  get hasSynced(): boolean {
    return [...this.#informers.values()].every((informer) => informer.hasSynced);
  }

  /** Resolves when all informers have synced and all controllers work. Rejects when stopped before, or when `init` does. */
  override async start(): Promise<void> {
    if (this.#state !== 'New') throw new Error('operator: start it once');
    await this.init();
    this.#refuseWhenStopped();
    this.#state = 'Started';
    for (const informer of this.#informers.values()) informer.start();
    await Promise.all(this.#controllers.map((controller) => controller.start()));
  }

  /** Resolves when every reconcile has ended and no request is open. Final. */
  override async stop(): Promise<void> {
    this.#state = 'Stopped';
    await Promise.all(this.#controllers.map((controller) => controller.stop()));
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }

  /** Server-side apply of the definition in a YAML file; resolves when the API server serves it. */
  protected override async registerCustomResourceDefinition(crdFile: string): Promise<{
    group: string;
    versions: V1CustomResourceDefinitionVersion[];
    plural: string;
  }> {
    const definition: unknown = parse(readFileSync(crdFile, 'utf8'));
    if (!isDefinition(definition))
      throw new Error(`${crdFile}: not a CustomResourceDefinition of apiextensions.k8s.io/v1`);
    const applied = await applyObject(this.#parts.client, CUSTOM_RESOURCE_DEFINITION, definition, {
      fieldManager: FIELD_MANAGER,
    });
    await this.#established(applied);
    const { group, names, versions } = applied.spec;
    this.#log.info({ name: applied.metadata.name }, 'custom resource definition registered');
    return { group, plural: names.plural, versions: versions.map((version) => ({ ...version })) };
  }

  protected override getCustomResourceApiUri(
    group: string,
    version: string,
    plural: string,
    namespace?: string,
  ): string {
    const base = this.#parts.transport.connection.server.href.replace(/\/+$/, '');
    return (
      base +
      collectionPath(
        { apiVersion: apiVersionOf(group, version), kind: '', plural, namespaced: true },
        namespace,
      )
    );
  }

  /**
   * `onEvent` is called for each object with its state as it is then, never twice at once for one object; a deletion
   * that is seen late comes with the last state known. Call it from `init`.
   */
  protected override async watchResource(
    group: string,
    version: string,
    plural: string,
    onEvent: (event: ResourceEvent) => Promise<void>,
    namespace?: string,
  ): Promise<void> {
    const apiVersion = apiVersionOf(group, version);
    // The kind's name is of no use for the URL, and every object of the answers would be renamed to it.
    const kind: ResourceKind = {
      apiVersion,
      kind: await this.#kindOf(apiVersion, plural),
      plural,
      namespaced: true,
    };
    this.#kinds.set(kindId(kind), kind);
    const informer = this.informer(kind, namespace === undefined ? {} : { namespace });
    const deliveries = new Deliveries(plural, onEvent);
    informer.subscribe((change) => deliveries.note(change));
    this.control({
      name: kindId(kind),
      sources: [from(informer)],
      reconcile: (key) => deliveries.deliver(key, informer.get(key)),
    });
  }

  /** PUT of the status, refused with Conflict when the object changed since `meta` was read. */
  protected override async setResourceStatus(
    meta: ResourceMeta,
    status: unknown,
  ): Promise<ResourceMeta | null> {
    const object = { ...this.#objectOf(meta), status };
    const written = await this.#parts.client.replace(this.#known(meta), object, { subresource: 'status' });
    return ResourceMetaImpl.createWithId(meta.id, toPackageObject(written));
  }

  /** Merge patch of the status, refused with Conflict when the object changed since `meta` was read. */
  protected override async patchResourceStatus(
    meta: ResourceMeta,
    status: unknown,
  ): Promise<ResourceMeta | null> {
    const body = { metadata: { resourceVersion: meta.resourceVersion }, status };
    const written = await this.#parts.client.patch(
      this.#known(meta),
      refOfMeta(meta),
      { type: 'merge', body },
      {
        subresource: 'status',
      },
    );
    return ResourceMetaImpl.createWithId(meta.id, toPackageObject(written));
  }

  /** Guarded by the version that the list was made from: another controller's finalizer is never dropped. */
  protected override async setResourceFinalizers(meta: ResourceMeta, finalizers: string[]): Promise<void> {
    const body = { metadata: { resourceVersion: meta.resourceVersion, finalizers } };
    await this.#parts.client.patch(this.#known(meta), refOfMeta(meta), { type: 'merge', body });
  }

  #refuseWhenStopped(): void {
    if (this.#state === 'Stopped') throw new Error('operator: it was stopped; make a new one');
  }

  #known(meta: ResourceMeta): ResourceKind {
    const kind = this.#kinds.get(meta.id);
    if (kind === undefined) throw new Error(`operator: ${meta.id} is not watched; call watchResource first`);
    return kind;
  }

  #objectOf(meta: ResourceMeta): KubeObject {
    const { apiVersion, kind, resourceVersion } = meta;
    return { apiVersion, kind, metadata: { ...refOfMeta(meta), resourceVersion } };
  }

  /** The API server knows the kind's name of a plural. */
  async #kindOf(apiVersion: string, plural: string): Promise<string> {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const where = `DISCOVER ${path}`;
    const found = await this.#parts.transport.json({ method: 'GET', path, where });
    const resources: readonly unknown[] =
      isRecord(found) && Array.isArray(found['resources']) ? found['resources'] : [];
    for (const resource of resources) {
      if (isRecord(resource) && resource['name'] === plural && typeof resource['kind'] === 'string')
        return resource['kind'];
    }
    throw new Error(`${where}: the API server has no ${plural}; apply their CustomResourceDefinition first`);
  }

  async #established(definition: CustomResourceDefinition): Promise<void> {
    const name = definition.metadata.name ?? '';
    const clock = this.#parts.clock ?? systemClock;
    for (let attempt = 0; attempt < 100; attempt++) {
      const found = await this.#parts.client.get(CUSTOM_RESOURCE_DEFINITION, { name });
      const conditions = found?.status?.conditions ?? [];
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return;
      const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
      if (refused) throw new Error(`${name}: names not accepted: ${refused.message}`);
      await sleep(clock, 100);
    }
    throw new Error(`${name}: not established after 10 s; see kubectl describe crd ${name}`);
  }
}

function apiVersionOf(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}

function refOfMeta(meta: ResourceMeta): { readonly name: string; readonly namespace?: string } {
  return meta.namespace === undefined ? { name: meta.name } : { name: meta.name, namespace: meta.namespace };
}

function isDefinition(value: unknown): value is CustomResourceDefinition {
  return (
    isRecord(value) &&
    value['apiVersion'] === CUSTOM_RESOURCE_DEFINITION.apiVersion &&
    value['kind'] === CUSTOM_RESOURCE_DEFINITION.kind &&
    isRecord(value['spec']) &&
    isRecord(value['metadata'])
  );
}
