/**
 * A conversation is written out again with every model call and every checkpoint. Its entries are added and replaced,
 * never changed, so the JSON of each is kept for as long as the entry: a turn costs what is new, and a copy of bytes.
 */
const kept = new WeakMap<object, Buffer>();

/** The JSON of one entry, in UTF-8. The entry must not be changed afterwards, nor the bytes. */
export function entryBytes(entry: unknown): Uint8Array {
  if (typeof entry !== 'object' || entry === null) return encode(entry);
  const known = kept.get(entry);
  if (known !== undefined) return known;
  const bytes = encode(entry);
  kept.set(entry, bytes);
  return bytes;
}

/** What a list of entries takes as JSON. */
export function listBytes(entries: readonly unknown[]): number {
  const brackets = 2;
  const commas = Math.max(0, entries.length - 1);
  return entries.reduce((sum: number, entry) => sum + entryBytes(entry).length, brackets + commas);
}

/** The bytes of `JSON.stringify(object)`, with the entries of the lists that are named `growing` from what is kept. */
export function jsonBytes<Name extends string>(
  object: { readonly [Field in Name]?: readonly unknown[] | undefined },
  growing: readonly Name[],
): Uint8Array {
  const parts: Uint8Array[] = [];
  let text = '{';
  let separator = '';
  for (const [name, value] of Object.entries<unknown>(object)) {
    if (value === undefined) continue;
    text += `${separator}${JSON.stringify(name)}:`;
    separator = ',';
    if (Array.isArray(value) && growing.some((one) => one === name)) {
      parts.push(Buffer.from(`${text}[`));
      for (const [index, entry] of value.entries()) {
        if (index > 0) parts.push(COMMA);
        parts.push(entryBytes(entry));
      }
      text = ']';
    } else {
      text += JSON.stringify(value);
    }
  }
  parts.push(Buffer.from(`${text}}`));
  return Buffer.concat(parts);
}

const COMMA = Buffer.from(',');

/** In a list JSON has null for what it cannot say. */
const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value) ?? 'null');
