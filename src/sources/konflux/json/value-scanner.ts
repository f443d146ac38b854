/** Not JSON, or beyond what is taken. `message` is what is wrong, without where. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

/** Kubernetes objects nest some 30 deep where it is much; the API server itself takes no more than 10,000. */
const MAX_DEPTH = 256;

/**
 * Finds the end of one JSON value in bytes that come in pieces of any size, as strict as JSON.parse, and holds nothing
 * of it but where it stands. (UTF-8 inside strings is not looked at: no byte of a longer character is a quote.)
 */
export class ValueScanner {
  #state: State = VALUE;
  #number: NumberState = AFTER_MINUS;
  #literal: Uint8Array = TRUE;
  #place = 0;
  #inKey = false;
  #depth = 0;
  readonly #isObject = new Uint8Array(MAX_DEPTH);

  /** Makes ready for the next value; whitespace before it is taken as its beginning. */
  begin(): void {
    this.#state = VALUE;
    this.#depth = 0;
    this.#inKey = false;
  }

  /**
   * Reads on from `from`: the index behind the value's last byte, or -1 when the bytes are used up before. A number
   * on its own ends only where something else begins. Throws JsonError.
   */
  scan(bytes: Uint8Array, from: number): number {
    const end = bytes.length;
    for (let at = from; at < end; ) {
      const byte = bytes[at] ?? 0;
      switch (this.#state) {
        case STRING:
          at = this.#inString(bytes, at);
          if (this.#isDone) return at;
          continue;
        case ESCAPE:
          if (byte === LOWER_U) {
            this.#state = HEX;
            this.#place = 0;
          } else if (ESCAPES.includes(byte)) this.#state = STRING;
          else throw new JsonError(`${shown(byte)} after a backslash`);
          break;
        case HEX:
          if (!isHex(byte)) throw new JsonError(`${shown(byte)} in a \\u escape`);
          this.#place += 1;
          if (this.#place === 4) this.#state = STRING;
          break;
        case NUMBER: {
          const next = nextOfNumber(this.#number, byte);
          if (next === undefined) {
            if (!COMPLETE.has(this.#number)) throw new JsonError(`${shown(byte)} in a number`);
            this.#valueEnded();
            if (this.#isDone) return at;
            // The byte belongs to what follows.
            continue;
          }
          this.#number = next;
          break;
        }
        case LITERAL:
          if (byte !== this.#literal[this.#place]) throw new JsonError(`${shown(byte)} in a word`);
          this.#place += 1;
          if (this.#place === this.#literal.length) {
            this.#valueEnded();
            if (this.#isDone) return at + 1;
          }
          break;
        default:
          if (isSpace(byte)) break;
          this.#structure(byte);
          if (this.#isDone) return at + 1;
      }
      at += 1;
    }
    return -1;
  }

  get #isDone(): boolean {
    return this.#state === DONE;
  }

  #structure(byte: number): void {
    const state = this.#state;
    if (state === AFTER_VALUE) this.#afterValue(byte);
    else if (state === COLON_NEXT) this.#colon(byte);
    else if (state === KEY) this.#key(byte);
    else if (state === KEY_OR_END && byte === CLOSE_BRACE) this.#close();
    else if (state === KEY_OR_END) this.#key(byte);
    else if (state === VALUE_OR_END && byte === CLOSE_BRACKET) this.#close();
    else this.#value(byte);
  }

  #colon(byte: number): void {
    if (byte !== COLON) throw new JsonError(`${shown(byte)} where a colon belongs`);
    this.#state = VALUE;
  }

  #value(byte: number): void {
    if (byte === QUOTE) this.#state = STRING;
    else if (byte === OPEN_BRACE) this.#open(1);
    else if (byte === OPEN_BRACKET) this.#open(0);
    else if (byte === LOWER_T) this.#word(TRUE);
    else if (byte === LOWER_F) this.#word(FALSE);
    else if (byte === LOWER_N) this.#word(NULL);
    else if (byte === MINUS || isDigit(byte)) {
      this.#state = NUMBER;
      this.#number = byte === MINUS ? AFTER_MINUS : byte === ZERO ? AFTER_ZERO : IN_INTEGER;
    } else throw new JsonError(`${shown(byte)} where a value belongs`);
  }

  #key(byte: number): void {
    if (byte !== QUOTE) throw new JsonError(`${shown(byte)} where a name belongs`);
    this.#state = STRING;
    this.#inKey = true;
  }

  #afterValue(byte: number): void {
    const inObject = this.#isObject[this.#depth - 1] === 1;
    if (byte === COMMA) this.#state = inObject ? KEY : VALUE;
    else if (byte === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) this.#close();
    else throw new JsonError(`${shown(byte)} where a comma or the end belongs`);
  }

  #word(literal: Uint8Array): void {
    this.#state = LITERAL;
    this.#literal = literal;
    this.#place = 1;
  }

  #open(isObject: 0 | 1): void {
    if (this.#depth === MAX_DEPTH) throw new JsonError(`values nested more than ${MAX_DEPTH} deep`);
    this.#isObject[this.#depth] = isObject;
    this.#depth += 1;
    this.#state = isObject === 1 ? KEY_OR_END : VALUE_OR_END;
  }

  #close(): void {
    this.#depth -= 1;
    this.#valueEnded();
  }

  #valueEnded(): void {
    this.#state = this.#depth === 0 ? DONE : AFTER_VALUE;
  }

  /** Most of an object's bytes are passed here. */
  #inString(bytes: Uint8Array, from: number): number {
    const end = bytes.length;
    let at = from;
    let byte = 0;
    while (at < end) {
      byte = bytes[at] ?? 0;
      if (byte === QUOTE || byte === BACKSLASH || byte < 0x20) break;
      at += 1;
    }
    if (at === end) return at;
    if (byte === BACKSLASH) this.#state = ESCAPE;
    else if (byte !== QUOTE) throw new JsonError(`the control character ${shown(byte)} in a string`);
    else if (this.#inKey) {
      this.#inKey = false;
      this.#state = COLON_NEXT;
    } else this.#valueEnded();
    return at + 1;
  }
}

type State = number;
const VALUE = 0;
const VALUE_OR_END = 1;
const KEY_OR_END = 2;
const KEY = 3;
const COLON_NEXT = 4;
const AFTER_VALUE = 5;
const STRING = 6;
const ESCAPE = 7;
const HEX = 8;
const NUMBER = 9;
const LITERAL = 10;
const DONE = 11;

type NumberState = number;
const AFTER_MINUS = 0;
const AFTER_ZERO = 1;
const IN_INTEGER = 2;
const AFTER_POINT = 3;
const IN_FRACTION = 4;
const AFTER_E = 5;
const AFTER_SIGN = 6;
const IN_EXPONENT = 7;
/** Where a number may end. */
const COMPLETE = new Set<NumberState>([AFTER_ZERO, IN_INTEGER, IN_FRACTION, IN_EXPONENT]);

/** Undefined for a byte that is no part of the number. */
function nextOfNumber(state: NumberState, byte: number): NumberState | undefined {
  const digit = isDigit(byte);
  switch (state) {
    case AFTER_MINUS:
      if (!digit) return undefined;
      return byte === ZERO ? AFTER_ZERO : IN_INTEGER;
    case AFTER_ZERO:
    case IN_INTEGER:
      if (digit) return state === IN_INTEGER ? IN_INTEGER : undefined;
      if (byte === POINT) return AFTER_POINT;
      return isE(byte) ? AFTER_E : undefined;
    case AFTER_POINT:
      return digit ? IN_FRACTION : undefined;
    case IN_FRACTION:
      if (digit) return IN_FRACTION;
      return isE(byte) ? AFTER_E : undefined;
    case AFTER_E:
      if (byte === PLUS || byte === MINUS) return AFTER_SIGN;
      return digit ? IN_EXPONENT : undefined;
    default:
      return digit ? IN_EXPONENT : undefined;
  }
}

const code = (character: string): number => character.charCodeAt(0);
const QUOTE = code('"');
const BACKSLASH = code('\\');
const OPEN_BRACE = code('{');
const CLOSE_BRACE = code('}');
const OPEN_BRACKET = code('[');
const CLOSE_BRACKET = code(']');
const COLON = code(':');
const COMMA = code(',');
const MINUS = code('-');
const PLUS = code('+');
const POINT = code('.');
const ZERO = code('0');
const LOWER_T = code('t');
const LOWER_F = code('f');
const LOWER_N = code('n');
const LOWER_U = code('u');
const ESCAPES = [...'"\\/bfnrt'].map(code);
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

export const isSpace = (byte: number): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;
const isE = (byte: number): boolean => byte === 0x65 || byte === 0x45;
const isHex = (byte: number): boolean =>
  isDigit(byte) || (byte >= 0x61 && byte <= 0x66) || (byte >= 0x41 && byte <= 0x46);

/** One byte, as a message shows it. */
export const shown = (byte: number): string =>
  byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `byte 0x${byte.toString(16).padStart(2, '0')}`;
