import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';

/** Ways in which a secret may be written where it does not belong. */
export const ENCODINGS: Readonly<Record<string, (secret: string) => string>> = {
  plain: (secret) => secret,
  base64: (secret) => Buffer.from(secret).toString('base64'),
  'base64 in the middle of more': (secret) => Buffer.from(`x${secret}yz`).toString('base64'),
  base64url: (secret) => Buffer.from(secret).toString('base64url'),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  HEX: (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  'URL-encoded': (secret) => Buffer.from(secret).toString('hex').replace(/../g, '%$&'),
  'JSON-escaped': (secret) => secret.replace(/./g, (letter) => `\\u${hex(letter).padStart(4, '0')}`),
  'HTML entities': (secret) => secret.replace(/./g, (letter) => `&#x${hex(letter)};`),
  reversed: (secret) => reversed(secret),
  'UTF-16 in base64': (secret) => Buffer.from(secret, 'utf16le').toString('base64'),
  'gzip in base64': (secret) => gzipSync(secret).toString('base64'),
};

const hex = (letter: string) => letter.charCodeAt(0).toString(16);
const reversed = (text: string) => [...text].reverse().join('');

/** A place where no secret belongs: what was sent, written or shown there. */
export type Sink = string | Uint8Array;

/**
 * Where which secret is found, as `log: action, reversed`; empty when all is well. Bytes are looked through as text and,
 * where they are gzip, unpacked.
 */
export function leaks(
  sinks: Readonly<Record<string, Sink>>,
  secrets: Readonly<Record<string, string>>,
): readonly string[] {
  return Object.entries(sinks).flatMap(([place, sink]) => {
    const texts = textsOf(sink);
    return Object.entries(secrets).flatMap(([name, secret]) => {
      if (secret.length < 12) throw new Error(`${name}: a canary has at least 12 characters`);
      const found = texts.map((text) => howWritten(text, secret)).find((how) => how !== undefined);
      return found === undefined ? [] : [`${place}: ${name}, ${found}`];
    });
  });
}

/** Every file below a folder, by its path within. */
export async function filesBelow(folder: string): Promise<Readonly<Record<string, Uint8Array>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = files.map(async (file) => [file.slice(folder.length + 1), await readFile(file)] as const);
  return Object.fromEntries(await Promise.all(read));
}

function textsOf(sink: Sink): readonly string[] {
  if (typeof sink === 'string') return [sink];
  const bytes = Buffer.from(sink);
  const inner = bytes[0] === 0x1f && bytes[1] === 0x8b ? unpacked(bytes) : undefined;
  return [bytes.toString('latin1'), ...(inner === undefined ? [] : textsOf(inner))];
}

function howWritten(text: string, secret: string): string | undefined {
  if (text.includes(secret)) return 'plain';
  if (text.includes(reversed(secret))) return 'reversed';
  if (text.toLowerCase().includes(Buffer.from(secret).toString('hex'))) return 'hex';
  const alphabet = text.replaceAll('-', '+').replaceAll('_', '/');
  if (base64Cores(Buffer.from(secret)).some((core) => alphabet.includes(core))) return 'base64';
  if (base64Cores(Buffer.from(secret, 'utf16le')).some((core) => alphabet.includes(core)))
    return 'UTF-16 in base64';
  if (decoded(text, /%([0-9a-f]{2})/gi).includes(secret)) return 'URL-encoded';
  if (decoded(text, /\\+u([0-9a-f]{4})/gi).includes(secret)) return 'JSON-escaped';
  if (decoded(text, /&#x0*([0-9a-f]+);/gi).includes(secret)) return 'HTML entities';
  if (decoded(text, /&#0*(\d+);/g, 10).includes(secret)) return 'HTML entities';
  for (const [packed] of alphabet.matchAll(/H4sI[A-Za-z0-9+/]{12,}/g))
    if (unpacked(Buffer.from(packed, 'base64'))?.includes(secret)) return 'gzip in base64';
  return undefined;
}

function decoded(text: string, form: RegExp, base = 16): string {
  return text.replace(form, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, base)));
}

/** What of the base64 of a longer text is the secret's own, at each of three places. */
function base64Cores(bytes: Buffer): readonly string[] {
  return [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
  });
}

function unpacked(bytes: Buffer): Buffer | undefined {
  try {
    return gunzipSync(bytes);
  } catch {
    return undefined;
  }
}
