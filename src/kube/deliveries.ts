import { type ResourceEvent, ResourceEventType, ResourceMetaImpl } from '@dot-i/k8s-operator';
import type { KubeObject } from '../crds/meta.ts';
import type { Change } from './cache.ts';

/** Turns "look at this key" into the package's events, so that none is lost and none is told twice without need. */
export class Deliveries {
  readonly #plural: string;
  readonly #onEvent: (event: ResourceEvent) => Promise<void>;
  /** Deletions that were not delivered yet, in order, by key. */
  readonly #gone = new Map<string, KubeObject[]>();
  /** uid that was told as added, by key. */
  readonly #told = new Map<string, string>();

  constructor(plural: string, onEvent: (event: ResourceEvent) => Promise<void>) {
    this.#plural = plural;
    this.#onEvent = onEvent;
  }

  note(change: Change): void {
    if (change.type === 'Deleted') this.#bury(change.key, change.object);
    const replaced =
      change.type === 'Modified' && change.previous.metadata.uid !== change.object.metadata.uid;
    if (replaced) this.#bury(change.key, change.previous);
  }

  async deliver(key: string, current: KubeObject | undefined): Promise<undefined> {
    for (let gone = this.#gone.get(key)?.[0]; gone !== undefined; gone = this.#gone.get(key)?.[0]) {
      await this.#tell(ResourceEventType.Deleted, gone);
      this.#told.delete(key);
      this.#gone.get(key)?.shift();
    }
    this.#gone.delete(key);
    if (current === undefined) return;
    const uid = current.metadata.uid ?? '';
    const isNew = this.#told.get(key) !== uid;
    await this.#tell(isNew ? ResourceEventType.Added : ResourceEventType.Modified, current);
    this.#told.set(key, uid);
  }

  #bury(key: string, object: KubeObject): void {
    this.#gone.set(key, [...(this.#gone.get(key) ?? []), object]);
  }

  async #tell(type: ResourceEventType, cached: KubeObject): Promise<void> {
    // The package's finalizer logic writes into the object it is given; the cache is shared.
    const object = toPackageObject(structuredClone(cached));
    await this.#onEvent({ type, object, meta: ResourceMetaImpl.createWithPlural(this.#plural, object) });
  }
}

/** client-node's type differs from ours in writable arrays and a Date that is a string in JSON. */
export function toPackageObject(object: KubeObject): ResourceEvent['object'] {
  return object as unknown as ResourceEvent['object']; // the same JSON object
}
