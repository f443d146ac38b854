import { Document, isAlias, isScalar, parseAllDocuments, visit } from 'yaml';
import type { RepositoryTree } from '../../port.ts';
import { fileText } from './application.ts';

/** One YAML document of a file. */
export interface Manifest {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** A scalar as it is written, so that the version `1.10` is not 1.1; undefined where there is none. */
  text(at: Path): string | undefined;
  /** A block as YAML of its own that every reader takes for what it was in its place; undefined: none there. */
  block(at: Path): string | undefined;
}

export type Path = readonly (string | number)[];

export type Manifests =
  | { readonly kind: 'Read'; readonly manifests: readonly Manifest[] }
  | { readonly kind: 'Unreadable'; readonly sentence: string };

/** Larger files hold data, not what is deployed. */
const MAX_BYTES = 1024 * 1024;

/** Every mapping in the documents of a file. */
export function manifestsOf(tree: RepositoryTree, path: string): Manifests {
  const file = fileText(tree, path);
  if (file.kind === 'None') return { kind: 'Unreadable', sentence: `${path} ${file.why}.` };
  if (file.text.length > MAX_BYTES)
    return {
      kind: 'Unreadable',
      sentence: `${path} has more than ${MAX_BYTES} bytes and was not searched for applications.`,
    };
  return parsedManifests(path, file.text);
}

/** The same of text that is no file: what a chart renders. */
export function parsedManifests(path: string, text: string): Manifests {
  try {
    const documents = parseAllDocuments(text, { merge: true, uniqueKeys: false, logLevel: 'silent' });
    // Anchors, comments and all: what scalars become is left to whoever reads them next.
    const literal = onFirstUse(() => parseAllDocuments(text, { schema: 'failsafe', uniqueKeys: false }));
    const manifests: Manifest[] = [];
    for (const [index, document] of Array.from(documents).entries()) {
      const error = document.errors[0];
      if (error !== undefined) throw error;
      const value: unknown = document.toJS({ maxAliasCount: 100 });
      if (!isRecord(value)) continue;
      manifests.push({
        path,
        value,
        text: (at) => written(document.getIn(at, true)) ?? shown(valueAt(value, at)),
        block(at) {
          const inside = valueAt(value, at);
          if (inside === undefined || inside === null) return undefined;
          return blockOf(literal()[index], at) ?? JSON.stringify(inside);
        },
      });
    }
    return { kind: 'Read', manifests };
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return { kind: 'Unreadable', sentence: `${path} is no YAML that can be read: ${why}.` };
  }
}

/** A manifest whose texts are filled in already, such as one of a template. */
export function plainManifest(path: string, value: Readonly<Record<string, unknown>>): Manifest {
  return {
    path,
    value,
    text: (at) => shown(valueAt(value, at)),
    block(at) {
      const inside = valueAt(value, at);
      return inside === undefined || inside === null ? undefined : JSON.stringify(inside);
    },
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function valueAt(value: unknown, at: Path): unknown {
  let inside = value;
  for (const segment of at) {
    if (Array.isArray(inside) && typeof segment === 'number') inside = inside[segment];
    else if (isRecord(inside) && Object.hasOwn(inside, segment)) inside = inside[segment];
    else return undefined;
  }
  return inside;
}

/** The list at a place; empty where there is none. */
export function listAt(value: unknown, at: Path): readonly unknown[] {
  const inside = valueAt(value, at);
  return Array.isArray(inside) ? inside : [];
}

function written(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined;
  if (typeof node.value === 'string') return node.value;
  return typeof node.source === 'string' && node.value !== null ? node.source : undefined;
}

const shown = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;

function blockOf(document: Document | undefined, at: Path): string | undefined {
  const node = document?.getIn(at, true);
  if (node === undefined || node === null) return undefined;
  let alias = isAlias(node);
  const alone = new Document(undefined, { schema: 'failsafe' });
  alone.contents = Object(node);
  visit(alone, {
    Alias: () => {
      alias = true;
      return visit.BREAK;
    },
    // Nothing at all means null; this schema would write an empty text.
    Scalar: (_key, scalar) => {
      if (scalar.type === 'PLAIN' && scalar.value === '') scalar.value = 'null';
    },
  });
  // What it refers to may stand outside of the block.
  if (alias) return undefined;
  try {
    return alone.toString({ lineWidth: 0 });
  } catch {
    return undefined;
  }
}

function onFirstUse<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
