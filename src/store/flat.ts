import type { ObjectStore } from './port.ts';

/**
 * One folder of keys as a store of its own: a key's last part is its name there. For a session that is saved
 * into a folder of people's, where its three files are to lie side by side.
 */
export function flatStore(store: ObjectStore): ObjectStore {
  const nameOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
  return {
    location: store.location,
    put: (key, body, options) => store.put(nameOf(key), body, options),
    get: (key, signal) => store.get(nameOf(key), signal),
    delete: (key) => store.delete(nameOf(key)),
    list: (prefix) => store.list(nameOf(prefix)),
  };
}
