import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import type { TarEntry } from '../cluster/tar.ts';

const FILE_TYPES = { directory: 0o040000, symlink: 0o120000, file: 0o100000 } as const;

/**
 * Writes the archive that the kernel unpacks as its first root file system: cpio in the format `newc`, see "initramfs
 * buffer format" in the kernel's documentation. Its bytes depend on nothing but the entries; owner is always root.
 */
export function writeCpio(path: string, entries: Iterable<TarEntry>): void {
  const fd = openSync(path, 'w');
  let inode = 0;
  const put = (name: string, mode: number, content: Uint8Array) => {
    inode += 1;
    writeSync(fd, member(name, mode, inode, content));
  };
  try {
    for (const entry of entries) put(entry.name, modeOf(entry), contentOf(entry));
    put('TRAILER!!!', 0, new Uint8Array());
  } finally {
    closeSync(fd);
  }
}

function modeOf(entry: TarEntry): number {
  return FILE_TYPES[entry.kind] | (entry.kind === 'symlink' ? 0o777 : entry.mode);
}

function contentOf(entry: TarEntry): Uint8Array {
  if (entry.kind === 'directory') return new Uint8Array();
  if (entry.kind === 'symlink') return Buffer.from(entry.target);
  return entry.content instanceof Uint8Array ? entry.content : readFileSync(entry.content.path);
}

/** Header, name and content, each padded to four bytes. */
function member(name: string, mode: number, inode: number, content: Uint8Array): Uint8Array {
  const named = Buffer.from(`${name}\0`);
  const links = 1;
  // inode, mode, uid, gid, links, time, size, four device numbers, size of the name, checksum (none in this format)
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, 0, 0, named.length, 0];
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`);
  return Buffer.concat([padded(Buffer.concat([header, named])), padded(content)]);
}

function padded(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, new Uint8Array((4 - (bytes.length % 4)) % 4)]);
}
