import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';

/** One entry of an archive. Names are relative, without a trailing slash. Owner is always root, time always 0. */
export type TarEntry =
  | { readonly kind: 'directory'; readonly name: string; readonly mode: number }
  | { readonly kind: 'symlink'; readonly name: string; readonly target: string }
  | { readonly kind: 'file'; readonly name: string; readonly mode: number; readonly content: FileContent };

/** The bytes themselves, or the path of the file that has them. */
export type FileContent = Uint8Array | { readonly path: string };

/** Writes a POSIX tar whose bytes depend on nothing but the entries; returns its SHA-256 (hex) and size. */
export function writeTar(path: string, entries: Iterable<TarEntry>): { sha256: string; size: number } {
  const hash = createHash('sha256');
  const fd = openSync(path, 'w');
  let size = 0;
  const write = (bytes: Uint8Array) => {
    hash.update(bytes);
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    size += bytes.length;
  };
  try {
    for (const entry of entries) {
      for (const header of headersOf(entry)) write(header);
      if (entry.kind === 'file') writeContent(entry.content, write);
    }
    // Two empty blocks end an archive.
    write(new Uint8Array(1024));
  } finally {
    closeSync(fd);
  }
  return { sha256: hash.digest('hex'), size };
}

function writeContent(content: FileContent, write: (bytes: Uint8Array) => void): void {
  let size = 0;
  if (content instanceof Uint8Array) {
    write(content);
    size = content.length;
  } else {
    const fd = openSync(content.path, 'r');
    try {
      const buffer = Buffer.alloc(1 << 20);
      for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
        write(buffer.subarray(0, count));
        size += count;
      }
    } finally {
      closeSync(fd);
    }
  }
  write(new Uint8Array(padding(size)));
}

/** The entry's header; before it, where a name is too long for it or not ASCII, an extended header (pax) with the names. */
function headersOf(entry: TarEntry): Uint8Array[] {
  const target = entry.kind === 'symlink' ? entry.target : '';
  const name = entry.kind === 'directory' ? `${entry.name}/` : entry.name;
  const records =
    (fits(name) ? '' : paxRecord('path', name)) + (fits(target) ? '' : paxRecord('linkpath', target));
  const type = { file: '0', symlink: '2', directory: '5' }[entry.kind];
  const mode = entry.kind === 'symlink' ? 0o777 : entry.mode;
  const own = block({ name, target, mode, type, size: entry.kind === 'file' ? sizeOf(entry.content) : 0 });
  if (records === '') return [own];
  const body = Buffer.from(records);
  const extended = block({ name: 'pax', target: '', mode: 0o644, type: 'x', size: body.length });
  return [extended, body, new Uint8Array(padding(body.length)), own];
}

/** A header has 100 bytes for a name; plain ASCII means the same to every reader. */
function fits(name: string): boolean {
  return Buffer.byteLength(name) <= 100 && /^[\x20-\x7e]*$/.test(name);
}

/** "LENGTH key=value\n", where LENGTH counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (String(length).length + rest !== length) length = String(length).length + rest;
  return `${length} ${key}=${value}\n`;
}

/** The 512 bytes of a ustar header; numbers are octal text, the checksum is taken with its own field as spaces. */
function block(header: { name: string; target: string; mode: number; type: string; size: number }): Buffer {
  const bytes = Buffer.alloc(512);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;
  bytes.write(header.name, 0, 100);
  bytes.write(octal(header.mode & 0o7777, 8), 100);
  bytes.write(octal(0, 8), 108);
  bytes.write(octal(0, 8), 116);
  bytes.write(octal(header.size, 12), 124);
  bytes.write(octal(0, 12), 136);
  bytes.write(' '.repeat(8), 148);
  bytes.write(header.type, 156);
  bytes.write(header.target, 157, 100);
  bytes.write('ustar\x0000', 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return bytes;
}

function sizeOf(content: FileContent): number {
  return content instanceof Uint8Array ? content.length : statSync(content.path).size;
}

function padding(size: number): number {
  return (512 - (size % 512)) % 512;
}

/** The bytes of a small text file in an archive. */
export function text(content: string): Uint8Array {
  return Buffer.from(content);
}

/** A whole small file as content. */
export function fileBytes(path: string): Uint8Array {
  return readFileSync(path);
}
