import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type Namespaces, ROOT } from './kubectl.ts';

/** A manifest, loosely: tests put into it what a schema has to refuse. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

export const SAMPLES = ['sandboxpool', 'agentworkflow', 'agentrun', 'agentsession'] as const;
export type Sample = (typeof SAMPLES)[number];

/** Objects of a file in config/samples, moved to the test's namespaces. */
export async function sampleFile(name: string, namespaces: Namespaces): Promise<readonly Manifest[]> {
  const content = await readFile(join(ROOT, `config/samples/${name}.yaml`), 'utf8');
  const moved = content
    .replaceAll('hummingbird-sandboxes', namespaces.sandboxes)
    .replace(/namespace: hummingbird$/gm, `namespace: ${namespaces.agents}`);
  return parseAllDocuments(moved).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS();
  });
}

export async function sample(name: Sample, namespaces: Namespaces): Promise<Manifest> {
  const [object, ...more] = await sampleFile(name, namespaces);
  if (object === undefined || more.length > 0)
    throw new Error(`config/samples/${name}.yaml must hold one object`);
  return object;
}

export interface Change {
  /** `spec.projects.0.path` */
  readonly path: string;
  /** Undefined takes the field away. */
  readonly value: unknown;
}

export const set = (path: string, value: unknown): Change => ({ path, value });
export const unset = (path: string): Change => ({ path, value: undefined });

/** A copy with the changes made; sections on the way are made too. */
export function changed(object: Manifest, ...changes: readonly Change[]): Manifest {
  const copy = structuredClone(object);
  for (const { path, value } of changes) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    let place: unknown = copy;
    for (const key of keys) {
      if (typeof place !== 'object' || place === null) throw new Error(`${path}: nothing to change there`);
      const next: unknown = Reflect.get(place, key) ?? {};
      Reflect.set(place, key, next);
      place = next;
    }
    if (typeof place !== 'object' || place === null) throw new Error(`${path}: nothing to change there`);
    if (value === undefined) Reflect.deleteProperty(place, last);
    else Reflect.set(place, last, value);
  }
  return copy;
}
