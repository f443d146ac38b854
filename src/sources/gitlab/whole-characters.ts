import { isUtf8 } from 'node:buffer';

const LENIENT = new TextDecoder('utf-8', { ignoreBOM: true });
const NOTHING: Uint8Array = new Uint8Array();

/** Chunks of bytes as chunks of whole, valid UTF-8 characters; what is no UTF-8 is replaced (U+FFFD). */
export class WholeCharacters {
  /** Start of a character that the last chunk ended in: 3 bytes at the most. */
  #held = NOTHING;

  push(chunk: Uint8Array): Uint8Array {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = endOfWhole(bytes);
    this.#held = Uint8Array.from(bytes.subarray(end));
    return repaired(bytes.subarray(0, end));
  }

  end(): Uint8Array {
    const held = this.#held;
    this.#held = NOTHING;
    return repaired(held);
  }
}

/** Valid text is handed on as it is, without a copy. */
function repaired(bytes: Uint8Array): Uint8Array {
  return isUtf8(bytes) ? bytes : Buffer.from(LENIENT.decode(bytes));
}

/** A first byte always begins a character, so that bytes may be cut before it. */
function endOfWhole(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte >= 0xc0) return widthOf(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Bytes of the character that a first byte begins. */
export function widthOf(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}
