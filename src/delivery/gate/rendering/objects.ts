import { parseAllDocuments } from 'yaml';
import { isRecord } from '../applications/manifests.ts';
import type { ObjectRef } from '../report.ts';
import { createTurns } from '../turns.ts';

export interface RenderedObject {
  readonly ref: ObjectRef;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The documents of what helm renders. `---` stands at the start of a line nowhere else: block texts are indented. */
export function documentsOf(manifests: string): readonly string[] {
  return manifests
    .split(/^---.*$/m)
    .map((text) => text.replace(SOURCE, '').trim())
    .filter((text) => text !== '');
}

/** The comment in which helm names the template: a renamed template changes no object. */
const SOURCE = /^\s*# Source: .*$/m;

export interface Unequal {
  readonly base: readonly string[];
  readonly head: readonly string[];
  /** Pairs that differ in nothing but the chart's version in labels. */
  readonly relabelled: number;
}

/** Leaves out the documents that are on both sides: most of them, and what is left has to be parsed. */
export function unequal(base: readonly string[], head: readonly string[]): Unequal {
  const exact = without(base, head, (text) => text);
  const alike = without(exact.base, exact.head, withoutVersionLabels);
  return { base: alike.base, head: alike.head, relabelled: alike.pairs };
}

function without(base: readonly string[], head: readonly string[], form: (text: string) => string) {
  const there = new Map<string, number>();
  for (const text of base) there.set(form(text), (there.get(form(text)) ?? 0) + 1);
  const shared = new Map<string, number>();
  const headOnly = head.filter((text) => {
    const key = form(text);
    const left = there.get(key) ?? 0;
    if (left === 0) return true;
    there.set(key, left - 1);
    shared.set(key, (shared.get(key) ?? 0) + 1);
    return false;
  });
  const baseOnly = base.filter((text) => {
    const key = form(text);
    const left = shared.get(key) ?? 0;
    if (left === 0) return true;
    shared.set(key, left - 1);
    return false;
  });
  return { base: baseOnly, head: headOnly, pairs: head.length - headOnly.length };
}

const VERSION_LABEL = /^\s*(helm\.sh\/chart|app\.kubernetes\.io\/version): .*$/gm;
const withoutVersionLabels = (text: string): string => text.replace(VERSION_LABEL, '');

export interface ParsedObjects {
  readonly objects: readonly RenderedObject[];
  /** Documents that no API server would take either: no YAML, or more than 1.5 MiB. */
  readonly unreadable: number;
}

/** What etcd takes of one object. */
const MAX_DOCUMENT_CHARACTERS = 1.5 * 1024 * 1024;

/** Objects of some documents, those of lists one by one. `namespace`: of objects that name none. */
export async function parsedObjects(documents: readonly string[], namespace: string): Promise<ParsedObjects> {
  const objects: RenderedObject[] = [];
  const turn = createTurns();
  let unreadable = 0;
  for (const text of documents) {
    // Each document costs something, however short.
    await turn(text.length + 1000);
    if (text.length > MAX_DOCUMENT_CHARACTERS) {
      unreadable += 1;
      continue;
    }
    try {
      for (const document of Array.from(
        parseAllDocuments(text, { merge: true, uniqueKeys: false, logLevel: 'silent' }),
      )) {
        if (document.errors.length > 0) throw document.errors[0];
        objects.push(...flattened(document.toJS({ maxAliasCount: 100 }), namespace));
      }
    } catch {
      unreadable += 1;
    }
  }
  return { objects, unreadable };
}

function flattened(value: unknown, namespace: string): readonly RenderedObject[] {
  if (!isRecord(value)) return [];
  const { apiVersion, kind, metadata, items } = value;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return [];
  if (kind.endsWith('List') && Array.isArray(items))
    return items.flatMap((item) => flattened(item, namespace));
  const named = isRecord(metadata) ? metadata : {};
  const own = typeof named['namespace'] === 'string' ? named['namespace'] : undefined;
  const ref: ObjectRef = {
    apiVersion,
    kind,
    name: String(named['name'] ?? named['generateName'] ?? ''),
    // The release's own namespace is not said again, so that a move of the whole release is one move.
    ...(own !== undefined && own !== namespace && { namespace: own }),
  };
  return [{ ref, value }];
}
