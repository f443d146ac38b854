import type { KubeObject } from '../crds/meta.ts';
import { compareVersions } from './versions.ts';

/** What became of one object in the cache. */
export type Change<T extends KubeObject = KubeObject> =
  | { readonly type: 'Added'; readonly key: string; readonly object: T }
  | { readonly type: 'Modified'; readonly key: string; readonly object: T; readonly previous: T }
  /** `object` is the last state known. */
  | { readonly type: 'Deleted'; readonly key: string; readonly object: T }
  /** Nothing new: told again on a resync, so that whatever was forgotten is looked at. */
  | { readonly type: 'Resync'; readonly key: string; readonly object: T };

/** `namespace/name`, or `name` for cluster-scoped objects. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name ?? ''}` : (name ?? '');
}

/** The parts of a key made by `keyOf`. */
export function refOfKey(key: string): { readonly namespace?: string; readonly name: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Deleted uids that are remembered, so that a late event cannot bring one back. */
const GRAVES = 1024;

/**
 * Objects by key. Per uid the versions only go forward; a deleted uid stays deleted; an older object of the
 * same name never replaces a newer one.
 */
export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  /** Deleted uids, oldest first. */
  readonly #graves = new Set<string>();

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  entries(): IterableIterator<[string, T]> {
    return this.#objects.entries();
  }

  /** The change, or undefined when the object is not news. */
  put(object: T): Change<T> | undefined {
    const { uid, resourceVersion } = object.metadata;
    if (uid !== undefined && this.#graves.has(uid)) return undefined;
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous !== undefined) {
      const order = compareVersions(resourceVersion, previous.metadata.resourceVersion);
      if (order !== undefined && order <= 0) return undefined;
    }
    this.#objects.set(key, object);
    if (previous === undefined) return { type: 'Added', key, object };
    if (previous.metadata.uid !== uid) this.#bury(previous);
    return { type: 'Modified', key, object, previous };
  }

  /** Removes by uid: another object of the same name stays. */
  remove(object: T): Change<T> | undefined {
    this.#bury(object);
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous === undefined || previous.metadata.uid !== object.metadata.uid) return undefined;
    this.#objects.delete(key);
    return { type: 'Deleted', key, object };
  }

  /** Makes the cache equal to a complete list; the changes, deletions first. */
  replace(objects: readonly T[]): Change<T>[] {
    const listed = new Set(objects.map(keyOf));
    const gone = [...this.#objects].filter(([key]) => !listed.has(key)).map(([, object]) => object);
    const changes = [
      ...gone.map((object) => this.remove(object)),
      ...objects.map((object) => this.put(object)),
    ];
    return changes.filter((change) => change !== undefined);
  }

  /** Forgets everything, versions and graves too: for a server whose history went back. */
  clear(): Change<T>[] {
    const changes = [...this.#objects].map(([key, object]): Change<T> => ({ type: 'Deleted', key, object }));
    this.#objects.clear();
    this.#graves.clear();
    return changes;
  }

  #bury(object: T): void {
    if (object.metadata.uid === undefined) return;
    this.#graves.add(object.metadata.uid);
    for (const oldest of this.#graves) {
      if (this.#graves.size <= GRAVES) break;
      this.#graves.delete(oldest);
    }
  }
}
