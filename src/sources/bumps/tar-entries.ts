/** What a repository's archive has: files, links and folders. */
export type TarEntry =
  | { readonly kind: 'File'; readonly path: string; readonly bytes: Uint8Array; readonly executable: boolean }
  | { readonly kind: 'TooLarge'; readonly path: string; readonly size: number }
  | { readonly kind: 'Symlink'; readonly path: string; readonly target: string }
  | { readonly kind: 'Folder'; readonly path: string }
  /** Of the whole archive: the commit that `git archive` says it is of. */
  | { readonly kind: 'Commit'; readonly sha: string };

/** What is wrong with an archive, in words that follow `The archive`. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

const BLOCK = 512;
/** Names and link targets of Git are shorter; a longer header is nobody's. */
const MAX_HEADER_BYTES = 16_384;
/** More headers in a row than anybody writes before an entry: one of each kind, and room. */
const MAX_HEADERS = 8;

/**
 * Entries of a tar stream as `git archive` writes it (ustar with pax headers; GNU's long names too), in constant memory
 * but for one file. Files over `maxFileBytes` are passed over and named. Throws `ArchiveError` for a damaged one and
 * for entries that no repository has.
 */
export async function* tarEntries(
  chunks: AsyncIterable<Uint8Array>,
  maxFileBytes: number,
): AsyncGenerator<TarEntry> {
  const input = new Blocks(chunks);
  let extra: Extra = {};
  for (let headers = 0; ; ) {
    const header = await input.take(BLOCK);
    if (header.every((byte) => byte === 0)) return await input.drain();
    checkSum(header);
    const type = String.fromCharCode(header[156] ?? 0);
    const size = extra.size ?? octal(header.subarray(124, 136));
    if ('gxLK'.includes(type)) {
      headers += 1;
      if (size > MAX_HEADER_BYTES || headers > MAX_HEADERS)
        throw new ArchiveError('has a header that is too long');
      const body = (await input.take(padded(size))).subarray(0, size);
      if (type === 'g') {
        const { comment } = paxRecords(body);
        if (comment !== undefined) yield { kind: 'Commit', sha: comment };
      } else extra = { ...extra, ...extraOf(type, body) };
      continue;
    }
    const path = extra.path ?? nameOf(header);
    const target = extra.target ?? text(header.subarray(157, 257));
    headers = 0;
    extra = {};
    switch (type) {
      case '0':
      case '\0':
        if (size > maxFileBytes) {
          await input.skip(padded(size));
          yield { kind: 'TooLarge', path, size };
          break;
        }
        yield {
          kind: 'File',
          path,
          bytes: (await input.take(padded(size))).subarray(0, size),
          executable: (octal(header.subarray(100, 108)) & 0o100) !== 0,
        };
        break;
      case '2':
        await input.skip(padded(size));
        yield { kind: 'Symlink', path, target };
        break;
      case '5':
        await input.skip(padded(size));
        yield { kind: 'Folder', path };
        break;
      default:
        throw new ArchiveError(`has an entry of a kind that no repository has (${JSON.stringify(type)})`);
    }
  }
}

/** What headers before an entry say of it. */
interface Extra {
  readonly path?: string;
  readonly target?: string;
  readonly size?: number;
}

function extraOf(type: string, body: Uint8Array): Extra {
  if (type === 'L') return { path: text(body) };
  if (type === 'K') return { target: text(body) };
  const { path, linkpath: target, size } = paxRecords(body);
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw damaged('a size is no number');
  return {
    ...(path !== undefined && { path }),
    ...(target !== undefined && { target }),
    ...(size !== undefined && { size: Number(size) }),
  };
}

/** `LENGTH KEY=VALUE\n`, where the length counts the bytes of the whole record: values may have line breaks. */
function paxRecords(body: Uint8Array): Readonly<Record<string, string>> {
  const found = new Map<string, string>();
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = space < 0 ? 0 : Number(bytes.toString('latin1', at, space));
    const record = bytes.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(0x3d);
    const whole = Number.isInteger(length) && at + length > space + 1 && at + length <= bytes.length;
    if (!whole || equals < 0 || bytes[at + length - 1] !== 0x0a) throw damaged('a pax header is cut');
    found.set(record.toString('utf8', 0, equals), record.toString('utf8', equals + 1));
    at += length;
  }
  return Object.fromEntries(found);
}

class Blocks {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** A copy of its own: nothing of the stream's buffers is held. */
  async take(count: number): Promise<Uint8Array> {
    const whole = new Uint8Array(count);
    for (let filled = 0; filled < count; ) {
      if (this.#rest.length === 0) await this.#more();
      const part = this.#rest.subarray(0, count - filled);
      whole.set(part, filled);
      filled += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    return whole;
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0) await this.#more();
      const part = Math.min(left, this.#rest.length);
      this.#rest = this.#rest.subarray(part);
      left -= part;
    }
  }

  /** To the end of the stream, which is where its sum stands. */
  async drain(): Promise<void> {
    while ((await this.#chunks.next()).done !== true);
  }

  async #more(): Promise<void> {
    const next = await this.#chunks.next();
    if (next.done === true) throw damaged('it ends in the middle');
    this.#rest = next.value;
  }
}

const padded = (size: number): number => Math.ceil(size / BLOCK) * BLOCK;

const damaged = (how: string): ArchiveError => new ArchiveError(`is damaged: ${how}`);

function checkSum(header: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (header[at] ?? 0);
  if (sum !== octal(header.subarray(148, 156))) throw damaged('the sum of a header is wrong');
}

function nameOf(header: Uint8Array): string {
  const name = text(header.subarray(0, 100));
  const prefix = text(header.subarray(257, 262)) === 'ustar' ? text(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString().replace(/\0.*$/s, '');

function octal(bytes: Uint8Array): number {
  const digits = text(bytes).trim();
  if (!/^[0-7]{1,12}$/.test(digits)) throw damaged('a size is no octal number');
  return Number.parseInt(digits, 8);
}
