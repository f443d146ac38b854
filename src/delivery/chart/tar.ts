/** A regular file of an archive; everything else in it is passed over. */
export interface TarFile {
  /** As written in the archive, without a leading `./`. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** What is wrong with an archive, in words that follow the archive's name. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

const BLOCK = 512;
/** Names longer than this are nobody's chart. */
const MAX_NAME_BYTES = 4096;

/**
 * The wanted regular files of a tar stream, in constant memory but for them. Links and devices are passed over, so
 * nothing in an archive leads anywhere. Throws `TarError` when it is damaged or a wanted file exceeds `maxFileBytes`.
 */
export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  wanted: (path: string) => boolean,
  maxFileBytes: number,
): AsyncGenerator<TarFile> {
  const input = new Input(chunks);
  let longName: string | undefined;
  for (;;) {
    const header = await input.take(BLOCK);
    if (header === undefined) throw new TarError('ends in the middle');
    if (header.every((byte) => byte === 0)) return;
    checkSum(header);
    const size = octal(header.subarray(124, 136));
    const type = String.fromCharCode(header[156] ?? 0);
    const padded = Math.ceil(size / BLOCK) * BLOCK;
    if (type === 'x' || type === 'L') {
      if (size > MAX_NAME_BYTES) throw new TarError('has a file name of more than 4096 bytes');
      const body = await input.take(padded);
      if (body === undefined) throw new TarError('ends in the middle');
      const text = Buffer.from(body.subarray(0, size)).toString();
      longName = type === 'L' ? text.replace(/\0.*$/s, '') : (paxPath(text) ?? longName);
      continue;
    }
    const path = (longName ?? nameOf(header)).replace(/^(\.\/)+/, '');
    longName = undefined;
    const regular = type === '0' || type === '\0';
    if (!regular || !wanted(path)) {
      await input.skip(padded);
      continue;
    }
    if (size > maxFileBytes) throw new TarError(`has a file of more than ${maxFileBytes} bytes: ${path}`);
    const body = await input.take(padded);
    if (body === undefined) throw new TarError('ends in the middle');
    yield { path, bytes: body.subarray(0, size) };
  }
}

/** A tar of regular files whose bytes depend on nothing but them. Paths of up to 255 bytes. */
export function writeTar(files: readonly TarFile[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { path, bytes } of files) {
    if (Buffer.byteLength(path) > 100) {
      const name = Buffer.from(`${path}\0`);
      parts.push(headerOf('././@LongLink', name.length, 'L'), padded(name));
    }
    parts.push(headerOf(path, bytes.length, '0'), padded(bytes));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return Buffer.concat(parts);
}

class Input {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Undefined when the stream ends before. */
  async take(count: number): Promise<Uint8Array | undefined> {
    if (this.#rest.length >= count) {
      const whole = this.#rest.subarray(0, count);
      this.#rest = this.#rest.subarray(count);
      return whole;
    }
    const parts: Uint8Array[] = [];
    let missing = count;
    while (missing > 0) {
      if (this.#rest.length === 0 && !(await this.#more())) return undefined;
      const part = this.#rest.subarray(0, missing);
      parts.push(part);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) throw new TarError('ends in the middle');
      const part = Math.min(left, this.#rest.length);
      this.#rest = this.#rest.subarray(part);
      left -= part;
    }
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done === true) return false;
    this.#rest = next.value;
    return true;
  }
}

function checkSum(header: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (header[at] ?? 0);
  if (sum !== octal(header.subarray(148, 156)))
    throw new TarError('is damaged: the sum of a header is wrong');
}

function nameOf(header: Uint8Array): string {
  const name = text(header.subarray(0, 100));
  const prefix = text(header.subarray(257, 262)) === 'ustar' ? text(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

const UTF8 = new TextDecoder();

function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return UTF8.decode(end < 0 ? bytes : bytes.subarray(0, end));
}

function octal(bytes: Uint8Array): number {
  const digits = text(bytes).trim();
  if (!/^[0-7]{1,11}$/.test(digits)) throw new TarError('is damaged: a size is no octal number');
  return Number.parseInt(digits, 8);
}

/** Of a pax header, `LENGTH path=NAME`. */
const paxPath = (records: string): string | undefined => /^\d+ path=(.*)$/m.exec(records)?.[1];

function headerOf(path: string, size: number, type: '0' | 'L'): Uint8Array {
  const header = Buffer.alloc(BLOCK);
  const number = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;
  // Cut names are said whole in the header before.
  header.set(Buffer.from(path).subarray(0, 100), 0);
  header.write(number(0o644, 8), 100);
  header.write(number(0, 8), 108);
  header.write(number(0, 8), 116);
  header.write(number(size, 12), 124);
  header.write(number(0, 12), 136);
  header.write('        ', 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

function padded(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(Math.ceil(bytes.length / BLOCK) * BLOCK);
  whole.set(bytes);
  return whole;
}
