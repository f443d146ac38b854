/**
 * A job's trace as plain text: no terminal sequences, no `section_start:…` and `section_end:…` markers, what was written
 * over (`\r`) on lines of its own, invalid UTF-8 replaced. A state machine by character, so that the result is the same
 * wherever the chunks are cut, and memory stays constant however long a sequence pretends to be.
 */
export async function* plainLog(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: false });
  const encoder = new TextEncoder();
  const filter = new LogFilter();
  for await (const chunk of chunks) {
    const text = filter.push(decoder.decode(chunk, { stream: true }));
    if (text !== '') yield encoder.encode(text);
  }
  const rest = filter.push(decoder.decode()) + filter.end();
  if (rest !== '') yield encoder.encode(rest);
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
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [0-9a-f]{2}[OE][ +]`;
const TIMESTAMP = new RegExp(`^${TIME}$`);
const TIMESTAMP_SAMPLE = '2000-01-01T00:00:00.000000Z 00O ';
const WORD = 'section_';

export class LogFilter {
  #state: State = 'Text';
  #sequence = 0;
  /** Start of a line that may become a section marker. */
  #held = '';
  #holding = true;
  #afterReturn = false;

  push(text: string): string {
    let out = '';
    let at = 0;
    while (at < text.length) {
      if (this.#isPlain) {
        const end = nextSpecial(text, at);
        if (end > at) out += text.slice(at, end);
        at = end;
        const known = wholeAt(text, at);
        if (known !== undefined) {
          out += known.shown;
          at += known.length;
          continue;
        }
      }
      out += this.#step(text.charAt(at));
      at += 1;
    }
    return out;
  }

  /** Whether an ordinary character would be shown as it is, and change nothing. */
  get #isPlain(): boolean {
    return this.#state === 'Text' && !this.#holding && !this.#afterReturn;
  }

  end(): string {
    return this.#release();
  }

  #step(character: string): string {
    if (this.#state !== 'Text') return this.#inSequence(character);
    if (character === '\u001b') {
      this.#state = 'Escape';
      this.#sequence = 0;
      return '';
    }
    if (character === '\u009b') {
      this.#state = 'Control';
      this.#sequence = 0;
      return '';
    }
    return this.#visible(character);
  }

  #inSequence(character: string): string {
    this.#sequence += 1;
    // No sequence spans lines, except in the strings of a broken program: the line end wins.
    if (character === '\n' || this.#sequence > MAX_SEQUENCE) {
      this.#state = 'Text';
      return this.#visible(character);
    }
    if (character === '\u001b') {
      this.#state = this.#state === 'String' ? 'StringEscape' : 'Escape';
      return '';
    }
    this.#state = next(this.#state, character);
    return '';
  }

  #visible(character: string): string {
    if (character === '\r') {
      const marker = this.#holding && MARKER.test(this.#held);
      const out = marker ? '' : this.#release();
      if (marker) this.#held = '';
      this.#holding = true;
      this.#afterReturn = !marker;
      return out;
    }
    if (character === '\n') {
      const out = this.#holding && MARKER.test(this.#held) ? '' : this.#release();
      this.#held = '';
      this.#holding = true;
      this.#afterReturn = false;
      return `${out}\n`;
    }
    if (character !== '\t' && (character < ' ' || (character >= '\u007f' && character <= '\u009f')))
      return '';
    // A lone return goes back to the start of the line; shown here as a line of its own.
    const start = this.#afterReturn ? '\n' : '';
    this.#afterReturn = false;
    if (!this.#holding) return start + character;
    this.#held += character;
    if (mayBecomeMarker(this.#held)) return start;
    return start + this.#release();
  }

  #release(): string {
    const held = this.#held;
    this.#held = '';
    this.#holding = false;
    return held;
  }
}

// Most of a log is plain text, and hundreds of megabytes are not walked through by character: text that the machine would
// leave as it is, whole sequences and starts of lines are found by these. They shorten the machine's way, no more.
const CONTROLS = String.raw`\0-\x08\x0b-\x1f\x7f-\x9f`;
/** What starts neither a marker nor a time. */
const ORDINARY = String.raw`[^s\d${CONTROLS}]`;
/** A control sequence to its end, in far fewer characters than MAX_SEQUENCE. */
const WHOLE_SEQUENCE = String.raw`\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]`;

const SPECIAL = new RegExp(`[${CONTROLS}]|\n(?!${ORDINARY})`, 'g');
const SEQUENCE = new RegExp(WHOLE_SEQUENCE, 'y');
const LINE_START = new RegExp(`\n(${TIME})?(?:${WHOLE_SEQUENCE})*(?=${ORDINARY})`, 'y');

function nextSpecial(text: string, from: number): number {
  SPECIAL.lastIndex = from;
  return SPECIAL.exec(text)?.index ?? text.length;
}

/** A sequence or the start of a line that lies whole in the text: its length, and what is shown of it. */
function wholeAt(text: string, at: number): { readonly length: number; readonly shown: string } | undefined {
  const pattern = text[at] === '\n' ? LINE_START : SEQUENCE;
  pattern.lastIndex = at;
  const found = pattern.exec(text);
  if (found === null) return undefined;
  return { length: found[0].length, shown: pattern === SEQUENCE ? '' : `\n${found[1] ?? ''}` };
}

/** Whether a line that starts so may still turn out to be a marker, with or without its time. */
function mayBecomeMarker(line: string): boolean {
  if (line.length > MAX_MARKER) return false;
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
