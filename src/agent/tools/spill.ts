import { SPILL_DIR } from '../../sandbox/port.ts';
import { type Redact, redactNothing } from '../redaction.ts';

/**
 * Output of at most this many bytes goes to the model whole, anything larger to a file in the sandbox. 4 KiB are
 * some 1,000 tokens, which are sent again with every later call of the run.
 */
export const MAX_INLINE_BYTES = 4096;
/** What the model sees of a spilled output: its start and, of a command, its end, where errors stand. */
export const HEAD_BYTES = 3072;
export const TAIL_BYTES = 1024;
/** Read beyond the cuts, so that a secret that lies across one is found whole and removed before it is cut. */
export const CUT_MARGIN_BYTES = 512;

/** Numbers of the files below SPILL_DIR: one counter for all tools of a run, so that names never collide. */
export interface SpillCounter {
  /** The last number given out; 0 before the first. For checkpoints. */
  readonly last: number;
  next(): number;
  /** Gives back numbers that were not used, when nobody took one since. */
  giveBack(numbers: readonly number[]): void;
}

export function createSpillCounter(last = 0): SpillCounter {
  let current = last;
  return {
    get last() {
      return current;
    },
    next: () => ++current,
    giveBack(numbers) {
      for (const number of numbers.toSorted((a, b) => b - a)) if (number === current) current -= 1;
    },
  };
}

/** `suffix` with its dot; from a tool, so it is reduced to what a file name may hold. */
export function spillPath(name: string, suffix: string): string {
  return `${SPILL_DIR}/${name.replace(/[^\w.-]/g, '_')}${suffix.replace(/[^\w.-]/g, '_')}`;
}

/**
 * Preview of a text that was too long: its first HEAD_BYTES, cut between characters. `window` holds the text's
 * first HEAD_BYTES + CUT_MARGIN_BYTES (or more). What redaction leaves of the margin is always cut off.
 */
export function headOf(window: Uint8Array, redact: Redact = redactNothing): string {
  const text = redact(decode(window.subarray(0, HEAD_BYTES + CUT_MARGIN_BYTES), { cutEnd: true }));
  const bytes = Buffer.from(text);
  return decode(bytes.subarray(0, Math.min(HEAD_BYTES, bytes.length - CUT_MARGIN_BYTES)), { cutEnd: true });
}

/** The same at the other end: the last TAIL_BYTES. */
export function tailOf(window: Uint8Array, redact: Redact = redactNothing): string {
  const text = redact(decode(window.subarray(-(TAIL_BYTES + CUT_MARGIN_BYTES)), { cutStart: true }));
  const bytes = Buffer.from(text);
  return decode(bytes.subarray(Math.max(bytes.length - TAIL_BYTES, CUT_MARGIN_BYTES)), { cutStart: true });
}

export function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (const byte of bytes) if (byte === NEWLINE) lines += 1;
  return lines;
}

/** UTF-8 with replacement: one stray byte must not cost the whole output. */
export function decode(bytes: Uint8Array, cut: { cutStart?: boolean; cutEnd?: boolean } = {}): string {
  const start = cut.cutStart ? startOfCharacter(bytes) : 0;
  const end = cut.cutEnd ? endOfCharacters(bytes) : bytes.length;
  return LENIENT.decode(bytes.subarray(start, end));
}

const NEWLINE = 0x0a;
const LENIENT = new TextDecoder('utf-8', { ignoreBOM: true });

/** Skips the rest (at most 3 bytes) of a character whose start was cut off. */
function startOfCharacter(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start += 1;
  // More than three in a row are no cut character but foreign bytes: keep them all, replaced.
  return isContinuation(bytes[start]) ? 0 : start;
}

/** Leaves out a last character whose end was cut off. */
function endOfCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 4 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return lengthOfCharacter(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function lengthOfCharacter(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}
