const BLOCK = 512;

export interface TarEntry {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly executable?: boolean;
  /** Of `bytes` nothing is written then. */
  readonly symlink?: string;
  /** One of tar's letters; default that of a file, or of a link. */
  readonly type?: string;
}

/** A POSIX archive as `git archive` writes one; with `sha` it begins with the commit that it shows. */
export function tar(entries: readonly TarEntry[], sha?: string): Buffer {
  const parts: Uint8Array[] = [];
  if (sha !== undefined) parts.push(...entry('pax_global_header', paxRecord('comment', sha), 'g'));
  for (const { path, bytes, executable = false, symlink, type } of entries) {
    const long = Buffer.byteLength(path) > 100 && cutOf(path) < 0;
    if (long || Buffer.byteLength(symlink ?? '') > 100)
      parts.push(
        ...entry(
          'pax_header',
          Buffer.concat([
            ...(long ? [paxRecord('path', path)] : []),
            ...(symlink !== undefined && symlink.length > 100 ? [paxRecord('linkpath', symlink)] : []),
          ]),
          'x',
        ),
      );
    if (symlink === undefined) parts.push(...entry(path, bytes, type ?? '0', executable ? 0o775 : 0o664));
    else parts.push(...entry(path, new Uint8Array(), type ?? '2', 0o777, symlink));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function entry(
  path: string,
  bytes: Uint8Array,
  type: string,
  mode = 0o644,
  link = '',
): readonly Uint8Array[] {
  const padding = Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK);
  return [header(path, bytes.length, type, mode, link), bytes, padding];
}

/** Where a path over 100 bytes is split into prefix and name; below 0: it is not. */
const cutOf = (path: string): number => {
  const bytes = Buffer.from(path);
  if (bytes.length <= 100) return -1;
  const cut = path.indexOf('/', bytes.length - 101);
  return cut <= 155 ? cut : -1;
};

function header(path: string, size: number, type: string, mode: number, link: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  // Paths over 100 bytes go to prefix and name, split at a slash.
  const cut = cutOf(path);
  block.write(path.slice(cut + 1), 0, 100);
  block.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
  block.write(link, 157, 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  if (cut > 0) block.write(path.slice(0, cut), 345, 155);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
