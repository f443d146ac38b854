/** Finds any of many values in one pass over a text, whose time does not grow with their number. */
export interface KnownValues {
  /** The text with each stretch that the values cover, also overlapping ones, replaced once. */
  replaced(text: string, by: string): string;
}

/** Values of fewer characters are not looked for. */
export const LEAST_LENGTH = 6;

export function knownValues(values: Iterable<string>): KnownValues {
  /** By the four characters that they begin with; the table of bits spares most look-ups. */
  const byBeginning = new Map<number, string[]>();
  const mayBegin = new Uint8Array(1 << 16);
  for (const value of new Set(values)) {
    if (value.length < LEAST_LENGTH) continue;
    const beginning = [0, 1, 2, 3].reduce((last, at) => pushed(last, value.charCodeAt(at)), 0);
    byBeginning.set(beginning, [...(byBeginning.get(beginning) ?? []), value]);
    mayBegin[scattered(beginning)] = 1;
  }
  for (const same of byBeginning.values()) same.sort((one, other) => other.length - one.length);
  return {
    replaced(text, by) {
      if (byBeginning.size === 0) return text;
      let clean = '';
      let done = 0;
      let begin = -1;
      let end = -1;
      let window = 0;
      for (let last = 0; last < text.length; last++) {
        window = pushed(window, text.charCodeAt(last));
        if (mayBegin[scattered(window)] === 0 || last < 3) continue;
        const at = last - 3;
        const length = byBeginning.get(window)?.find((value) => text.startsWith(value, at))?.length;
        if (length === undefined) continue;
        if (at >= end) {
          if (begin >= 0) clean += text.slice(done, begin) + by;
          if (begin >= 0) done = end;
          begin = at;
        }
        end = Math.max(end, at + length);
      }
      return begin < 0 ? text : clean + text.slice(done, begin) + by + text.slice(end);
    },
  };
}

/** The last four characters, a byte of each. */
const pushed = (window: number, code: number): number => (window << 8) | (code & 0xff);

/** Sixteen bits in which near ones come apart. */
const scattered = (window: number): number => Math.imul(window, 0x9e3779b1) >>> 16;

/**
 * How a secret is written where text is made of it: as it is, for URLs, JSON and HTML, in base64 (either alphabet, with
 * or without padding, also in the middle of something longer) and in hex. Not: turned round, in UTF-16, compressed.
 */
export function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const base64 = [0, 1, 2].flatMap((offset) => base64Within(bytes, offset));
  return [
    secret,
    encodeURIComponent(secret),
    hex.replace(/../g, '%$&'),
    hex.toUpperCase().replace(/../g, '%$&'),
    JSON.stringify(secret).slice(1, -1),
    secret.replace(/[&<>"']/g, (character) => NAMED[character] ?? character),
    secret.replace(/[&<>"'/+=]/g, (character) => `&#${character.charCodeAt(0)};`),
    bytes.toString('base64'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    ...base64,
    ...base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
    hex,
    hex.toUpperCase(),
  ];
}

const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Shorter stretches of base64 also stand in ordinary text. */
const LEAST_BASE64 = 8;

/** The characters that the bytes alone decide when they begin `offset` bytes behind a border of three. */
function base64Within(bytes: Buffer, offset: number): readonly string[] {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64url');
  const from = Math.ceil((offset * 8) / 6);
  const to = Math.floor(((offset + bytes.length) * 8) / 6);
  const own = text.slice(from, to).replaceAll('-', '+').replaceAll('_', '/');
  return own.length < LEAST_BASE64 ? [] : [own];
}
