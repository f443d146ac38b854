import { Document, isAlias, isMap, isScalar, isSeq, parseAllDocuments, visit, type YAMLMap } from 'yaml';
import { plainReading } from '../edits/yaml/plain-reading.ts';
import type { Value } from './value.ts';

export type DocumentReading =
  | { readonly kind: 'Read'; readonly value: Value }
  | { readonly kind: 'Unreadable'; readonly reason: string };

/** The library compares each key with each; `oddityOf` finds those that stand twice. */
const OPTIONS = { prettyErrors: false, logLevel: 'silent', intAsBigInt: true, uniqueKeys: false } as const;

/**
 * The one document of a text, when every reader of YAML sees the same in it: no aliases, no tags, no keys but text,
 * no plain scalar that YAML 1.1 and 1.2 take for different things.
 */
export function readDocument(text: string): DocumentReading {
  const documents = readDocuments(text);
  if (documents.length !== 1)
    return { kind: 'Unreadable', reason: `has ${documents.length} documents; exactly one is wanted` };
  return documents[0] ?? { kind: 'Unreadable', reason: 'is empty' };
}

/** Each document of a text by itself. */
export function readDocuments(text: string): readonly DocumentReading[] {
  try {
    return parseAllDocuments(text, OPTIONS).map((document): DocumentReading => {
      const [fault] = document.errors;
      if (fault) return { kind: 'Unreadable', reason: `is not YAML: ${fault.message}` };
      const odd = oddityOf(document);
      if (odd !== undefined) return { kind: 'Unreadable', reason: odd };
      return { kind: 'Read', value: plain(document.contents) };
    });
  } catch (error) {
    // The library's own stack, where a text is made of nothing but brackets.
    if (error instanceof RangeError) return [{ kind: 'Unreadable', reason: 'is nested too deeply' }];
    throw error;
  }
}

/** YAML in block style that all readers take for the same value; ends with a newline. */
export function writeDocument(value: Value): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string' && plainReading(scalar.value) !== 'String')
        scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}

function oddityOf(document: Document): string | undefined {
  let odd: string | undefined;
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) odd = `has the alias *${node.source}`;
      else if (node.tag !== undefined) odd = `has the tag ${node.tag}`;
      else if (isScalar(node) && node.type === 'PLAIN' && AMBIGUOUS.has(plainReading(node.source ?? '')))
        odd = `has ${node.source}, which YAML 1.1 and 1.2 read differently`;
      else if (isMap(node)) odd = twiceIn(node);
      return odd === undefined ? undefined : visit.BREAK;
    },
    Pair(_, { key }) {
      if (isScalar(key) && key.value === '<<') odd = 'has a merge key';
      else if (isScalar(key) && typeof key.value !== 'string')
        odd = `has the key ${key.source}, which is no text`;
      else if (!isScalar(key)) odd = 'has a key that is no text';
      return odd === undefined ? undefined : visit.BREAK;
    },
  });
  return odd;
}

function twiceIn({ items }: YAMLMap): string | undefined {
  const seen = new Set<string>();
  for (const { key } of items) {
    const name = isScalar(key) ? String(key.value) : '';
    if (seen.has(name)) return `has the key ${name} twice in one mapping`;
    seen.add(name);
  }
  return undefined;
}

const AMBIGUOUS: ReadonlySet<string> = new Set(['OldBoolean', 'OtherNumber', 'Date', 'Sign']);

/** `toJS` would make an object's prototype of a key `__proto__`. */
function plain(node: unknown): Value {
  if (isMap(node)) {
    const entries = node.items.map(({ key, value }): [string, Value] => [
      isScalar(key) ? String(key.value) : '',
      plain(value),
    ]);
    return Object.fromEntries(entries);
  }
  if (isSeq(node)) return node.items.map(plain);
  if (!isScalar(node)) return null;
  const { value } = node;
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'bigint':
    case 'boolean':
      return value;
    default:
      return null;
  }
}
