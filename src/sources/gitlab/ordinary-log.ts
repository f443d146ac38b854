// Most of a log is ordinary text, and hundreds of megabytes are not walked through by character: what the state machine
// of plain-log.ts would leave as it is, and whole control sequences, are found here. They shorten its way, no more.

const NEWLINE = 0x0a;
const ESCAPE = 0x1b;
/** First byte of U+0080 to U+00BF, of which U+0080 to U+009F are controls. */
const LEAD_OF_C1 = 0xc2;
const LAST_C1 = 0x9f;
/** What a section marker starts with. */
const S = 0x73;
/** More than any sequence that a program writes; longer ones are left to the machine. */
const MAX_WHOLE_SEQUENCE = 128;

const ORDINARY = 0;
const LINE_END = 1;
const CONTROL = 2;
const LEAD = 3;

const KINDS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === NEWLINE) return LINE_END;
  if (byte === LEAD_OF_C1) return LEAD;
  return (byte < 0x20 && byte !== 0x09) || byte === 0x7f ? CONTROL : ORDINARY;
});

/** Four bytes at once: the highest bit of each says whether one of them is below 0x20, or 0x7f, or beyond ASCII. */
const HIGHEST_BITS = 0x80808080 | 0;
const isPrintable = (word: number): boolean =>
  (((word - 0x20202020) | (word + 0x01010101) | word) & HIGHEST_BITS) === 0;

/** A piece of a log, in whole characters. */
export class LogPiece {
  readonly bytes: Uint8Array;
  readonly #words: Int32Array;
  /** Bytes before the first word. */
  readonly #lead: number;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#lead = -bytes.byteOffset & 3;
    const count = Math.max(0, bytes.length - this.#lead) >> 2;
    this.#words =
      count === 0 ? new Int32Array() : new Int32Array(bytes.buffer, bytes.byteOffset + this.#lead, count);
  }

  /** Where the first byte lies that is not to be shown as it is, or starts what may become a marker. */
  ordinaryUntil(from: number): number {
    const { bytes } = this;
    for (let at = from; at < bytes.length; at++) {
      const kind = KINDS[bytes[at] ?? 0];
      if (kind === ORDINARY) at = this.#afterPrintable(at + 1) - 1;
      else if (kind === CONTROL) return at;
      else if (kind === LEAD) {
        if ((bytes[at + 1] ?? 0) <= LAST_C1) return at;
      } else {
        const start = this.#ordinaryLine(at + 1);
        if (start === undefined) return at;
        at = start - 1;
      }
    }
    return bytes.length;
  }

  /** `at`, or behind the printable words that begin there. */
  #afterPrintable(at: number): number {
    const words = this.#words;
    if (((at - this.#lead) & 3) !== 0) return at;
    let index = (at - this.#lead) >> 2;
    if (index < 0) return at;
    while (index < words.length && isPrintable(words[index] ?? 0)) index++;
    return this.#lead + (index << 2);
  }

  /** From where on a line that begins at `at` is ordinary; undefined when that is not known or not so. */
  #ordinaryLine(at: number): number | undefined {
    const start = this.hasTimeAt(at) ? at + TIME_LENGTH : at;
    if (start === at && isDigit(this.bytes[at] ?? 0)) return undefined;
    return this.#isOrdinaryStart(start) ? start : undefined;
  }

  /** Whether a character stands there that ends the hope for a marker. */
  #isOrdinaryStart(at: number): boolean {
    const first = this.bytes[at];
    if (first === undefined || first === S) return false;
    const kind = KINDS[first];
    return kind === LEAD ? (this.bytes[at + 1] ?? 0) > LAST_C1 : kind !== CONTROL;
  }

  /**
   * The start of a line, from the line end before it on, with control sequences before what is ordinary: until where it
   * is shown, and where its text goes on.
   */
  colouredStart(at: number): { readonly shownUntil: number; readonly next: number } | undefined {
    if (this.bytes[at] !== NEWLINE) return undefined;
    const hasTime = this.hasTimeAt(at + 1);
    const shownUntil = at + 1 + (hasTime ? TIME_LENGTH : 0);
    let next = shownUntil;
    for (let end = this.sequenceEnd(next); end !== undefined; end = this.sequenceEnd(next)) next = end;
    const startsTime = !hasTime && isDigit(this.bytes[next] ?? 0);
    return next > shownUntil && !startsTime && this.#isOrdinaryStart(next) ? { shownUntil, next } : undefined;
  }

  /** End of the control sequence (ESC [ … final byte) that lies whole at `at`. */
  sequenceEnd(at: number): number | undefined {
    const { bytes } = this;
    if (bytes[at] !== ESCAPE || bytes[at + 1] !== 0x5b) return undefined;
    for (let end = at + 2; end < Math.min(bytes.length, at + MAX_WHOLE_SEQUENCE); end++) {
      const byte = bytes[end] ?? 0;
      if (byte >= 0x40 && byte <= 0x7e) return end + 1;
      if (byte < 0x20 || byte > 0x3f) return undefined;
    }
    return undefined;
  }

  /** Whether all of the time stands there that runners put before a line. */
  hasTimeAt(at: number): boolean {
    const { bytes } = this;
    if (at + TIME_LENGTH > bytes.length || !isDigit(bytes[at] ?? 0)) return false;
    for (let place = 0; place < TIME_LENGTH; place++) {
      if (((FITS[bytes[at + place] ?? 0] ?? 0) & (TIME_SHAPE[place] ?? 0)) === 0) return false;
    }
    return true;
  }
}

/** `2026-11-30T08:00:00.000000Z 00O `, with `0` for each digit, `f` for hex, `O` for O or E, `+` for it or a blank. */
const TIME = '0000-00-00T00:00:00.000000Z ffO+';
export const TIME_LENGTH = TIME.length;
const PLACES: readonly (readonly [string, RegExp])[] = [
  ['0', /[0-9]/],
  ['f', /[0-9a-f]/],
  ['O', /[OE]/],
  ['+', /[+ ]/],
  ['-', /-/],
  ['T', /T/],
  [':', /:/],
  ['.', /\./],
  ['Z', /Z/],
  [' ', / /],
];
/** Which bytes may stand at a place: a bit of the byte is one of the place's. */
const FITS = Uint16Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return PLACES.reduce((bits, [, fitting], bit) => bits | (fitting.test(character) ? 1 << bit : 0), 0);
});
const TIME_SHAPE = Uint16Array.from([...TIME], (sign) => 1 << PLACES.findIndex(([place]) => place === sign));

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;
