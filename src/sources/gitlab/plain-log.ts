import { LogPiece, TIME_LENGTH } from './ordinary-log.ts';
import { WholeCharacters, widthOf } from './whole-characters.ts';

/**
 * A job's trace as plain text: no terminal sequences, no `section_start:…` and `section_end:…` markers, what was written
 * over (`\r`) on lines of its own, invalid UTF-8 replaced. A state machine by character, so that the result is the same
 * wherever the chunks are cut, and memory stays constant however long a sequence pretends to be.
 */
export async function* plainLog(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const characters = new WholeCharacters();
  const filter = new LogFilter();
  for await (const chunk of chunks) {
    const text = filter.push(characters.push(chunk));
    if (text.length > 0) yield text;
  }
  const rest = Buffer.concat([filter.push(characters.end()), filter.end()]);
  if (rest.length > 0) yield rest;
}

type State =
  | 'Text'
  /** After ESC. */
  | 'Escape'
  /** ESC [ … up to a final byte. */
  | 'Control'
  /** ESC ] (and its kin) … up to BEL or ESC \. */
  | 'String'
  | 'StringEscape'
  /** ESC and intermediate bytes, up to a final byte. */
  | 'Intermediate';

/** Longest sequence that is believed to be one: what goes on longer is a stray ESC in the text. */
const MAX_SEQUENCE = 4096;
/** `section_start:1700000000:a_name[collapsed=true]`, which a `\r` ends. Nothing longer is held back. */
const MAX_MARKER = 512;
const MARKER = /^(?:\S{27} [0-9a-f]{2}[OE][ +])?section_(?:start|end):\d+:[^\s[\]]+(?:\[[^\]\n]*\])?$/;

/** Runners may put this before every line: time, stream number, output or error, new line or continued. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [0-9a-f]{2}[OE][ +]$/;
const TIMESTAMP_SAMPLE = '2000-01-01T00:00:00.000000Z 00O ';
const WORD = 'section_';
/** A time, the word, and the character after it. */
const LONGEST_START = TIMESTAMP_SAMPLE.length + WORD.length + 4;
/** Stands for all characters of which nothing depends on which one it is. */
const ANY_OTHER = '\u0100';

export class LogFilter {
  #state: State = 'Text';
  #sequence = 0;
  /** Start of a line that may become a section marker, a byte in each unit. */
  #held = '';
  #holding = true;
  #afterReturn = false;

  /** Whole characters of UTF-8; an answer without change is `bytes` itself. */
  push(bytes: Uint8Array): Uint8Array {
    // A byte gives one at the most, but for what was held and the line that a return before has begun.
    let out: Output | undefined;
    const piece = new LogPiece(bytes);
    let at = 0;
    while (at < bytes.length) {
      if (this.#state === 'Text' && !this.#holding) {
        const end = piece.ordinaryUntil(at);
        if (at === 0 && end === bytes.length) return bytes;
        out ??= new Output(bytes.length + this.#held.length + 1);
        out.bytes(bytes, at, end);
        const line = piece.colouredStart(end);
        if (line !== undefined) out.bytes(bytes, end, line.shownUntil);
        at = line?.next ?? piece.sequenceEnd(end) ?? end;
        if (at > end || at === bytes.length) continue;
      }
      out ??= new Output(bytes.length + this.#held.length + 1);
      at = this.#step(piece, at, out);
    }
    return out?.taken() ?? bytes;
  }

  end(): Uint8Array {
    const out = new Output(this.#held.length);
    this.#release(out);
    return out.taken();
  }

  /** Takes the character at `at`, or the whole time that starts a line; returns where the next one starts. */
  #step(piece: LogPiece, at: number, out: Output): number {
    const { bytes } = piece;
    const first = bytes[at] ?? 0;
    const end = at + widthOf(first);
    // 0x80 to 0xbf are characters of their own after this one: the controls among them count.
    const code = first === 0xc2 ? (bytes[at + 1] ?? 0) : first;
    const character = first < 0x80 || first === 0xc2 ? String.fromCharCode(code) : ANY_OTHER;
    if (this.#state !== 'Text') {
      if (this.#endsSequence(character)) this.#visible(character, bytes, at, end, out);
    } else if (character === '\u001b' || character === '\u009b') {
      this.#state = character === '\u001b' ? 'Escape' : 'Control';
      this.#sequence = 0;
    } else if (this.#holding && this.#held === '' && piece.hasTimeAt(at)) {
      if (this.#afterReturn) out.text('\n');
      this.#afterReturn = false;
      this.#held = latin1(bytes, at, at + TIME_LENGTH);
      return at + TIME_LENGTH;
    } else this.#visible(character, bytes, at, end, out);
    return end;
  }

  /** Whether the character is the text's again, since no sequence is as long or goes over a line's end. */
  #endsSequence(character: string): boolean {
    this.#sequence += 1;
    // In the strings of a broken program, too, the line end wins.
    if (character === '\n' || this.#sequence > MAX_SEQUENCE) {
      this.#state = 'Text';
      return true;
    }
    if (character === '\u001b') this.#state = this.#state === 'String' ? 'StringEscape' : 'Escape';
    else this.#state = next(this.#state, character);
    return false;
  }

  #visible(character: string, bytes: Uint8Array, at: number, end: number, out: Output): void {
    if (character === '\r' || character === '\n') {
      const isMarker = this.#holding && MARKER.test(utf8(this.#held));
      if (isMarker) this.#held = '';
      else this.#release(out);
      this.#holding = true;
      this.#afterReturn = character === '\r' && !isMarker;
      if (character === '\n') out.text('\n');
      return;
    }
    if (character !== '\t' && (character < ' ' || (character >= '\u007f' && character <= '\u009f'))) return;
    // A lone return goes back to the start of the line; shown here as a line of its own.
    if (this.#afterReturn) out.text('\n');
    this.#afterReturn = false;
    if (!this.#holding) out.bytes(bytes, at, end);
    else {
      this.#held += latin1(bytes, at, end);
      if (!mayBecomeMarker(this.#held)) this.#release(out);
    }
  }

  #release(out: Output): void {
    out.text(this.#held);
    this.#held = '';
    this.#holding = false;
  }
}

/** Whether a line that starts so may still turn out to be a marker, with or without its time. */
function mayBecomeMarker(line: string): boolean {
  if (line.length > MAX_MARKER) return false;
  // It was looked at with each character that came, and had a marker's beginning when it was no longer than that.
  if (line.length > LONGEST_START) return true;
  if (WORD.startsWith(line.slice(0, WORD.length))) return true;
  const { length } = TIMESTAMP_SAMPLE;
  // The sample completes a time that is still growing.
  if (!TIMESTAMP.test(line.slice(0, length) + TIMESTAMP_SAMPLE.slice(line.length))) return false;
  return WORD.startsWith(line.slice(length, length + WORD.length));
}

function next(state: State, character: string): State {
  switch (state) {
    case 'Escape':
      if (character === '[') return 'Control';
      if (']PX^_'.includes(character)) return 'String';
      return character >= ' ' && character <= '/' ? 'Intermediate' : 'Text';
    case 'Control':
      return character >= '@' && character <= '~' ? 'Text' : 'Control';
    case 'Intermediate':
      return character >= '0' && character <= '~' ? 'Text' : 'Intermediate';
    case 'String':
      return character === '\u0007' || character === '\u009c' ? 'Text' : 'String';
    case 'StringEscape':
      return character === '\\' ? 'Text' : next('Escape', character);
    case 'Text':
      return 'Text';
  }
}

/** Bytes that are put together up to a size that is known before. */
class Output {
  readonly #bytes: Buffer;
  #length = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  bytes(source: Uint8Array, from: number, to: number): void {
    this.#bytes.set(source.subarray(from, to), this.#length);
    this.#length += to - from;
  }

  /** A byte in each unit. */
  text(text: string): void {
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
  }

  taken(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

const latin1 = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1');

const utf8 = (latin1Text: string): string => Buffer.from(latin1Text, 'latin1').toString();
