const BLOCK = 512;

/** A POSIX (ustar) archive of plain files. */
export function tar(entries: readonly { readonly path: string; readonly bytes: Uint8Array }[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const { path, bytes } of entries) {
    parts.push(header(path, bytes.length), bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

function header(path: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  // Paths over 100 bytes go to prefix and name, split at a slash.
  const bytes = Buffer.from(path);
  const cut = bytes.length <= 100 ? -1 : path.indexOf('/', bytes.length - 101);
  block.write(path.slice(cut + 1), 0, 100);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  if (cut > 0) block.write(path.slice(0, cut), 345, 155);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
