/**
 * The string behind a path of names in one JSON object (`['metadata', 'uid']`), without parsing the rest of it.
 * Undefined when there is none there. The bytes must be one complete JSON value. Of a name that stands twice the
 * first counts.
 */
export function stringAt(json: Uint8Array, path: readonly string[]): string | undefined {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  let at = spaceEnd(bytes, 0);
  for (const name of path) {
    const found = valueIn(bytes, at, name);
    if (found === undefined) return undefined;
    at = found;
  }
  if (bytes[at] !== QUOTE) return undefined;
  return decoded(bytes, at, stringEnd(bytes, at));
}

/** Where the value of `name` begins in the object at `from`. */
function valueIn(bytes: Buffer, from: number, name: string): number | undefined {
  if (bytes[from] !== OPEN_BRACE) return undefined;
  let at = spaceEnd(bytes, from + 1);
  while (bytes[at] === QUOTE) {
    const nameEnd = stringEnd(bytes, at);
    const found = decoded(bytes, at, nameEnd);
    // Behind the colon.
    at = spaceEnd(bytes, spaceEnd(bytes, nameEnd) + 1);
    if (found === name) return at;
    at = spaceEnd(bytes, valueEnd(bytes, at));
    if (bytes[at] === COMMA) at = spaceEnd(bytes, at + 1);
  }
  return undefined;
}

function decoded(bytes: Buffer, from: number, to: number): string {
  const plain = bytes.toString('utf8', from + 1, to - 1);
  return plain.includes('\\') ? String(JSON.parse(bytes.toString('utf8', from, to))) : plain;
}

/** Behind the closing quote. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

function valueEnd(bytes: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      if (depth === 0) return at;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // Of the object around a number or a word.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && byte === COMMA) return at;
    at += 1;
  }
  return at;
}

function spaceEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && (bytes[at] ?? 0) <= 0x20) at += 1;
  return at;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
