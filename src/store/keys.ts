import { StoreError } from './port.ts';

/** S3's own limit. */
const MAX_KEY_BYTES = 1024;

/** Throws `StoreError` for a key that does not mean the same in a folder and in a bucket. */
export function checkKey(key: string): void {
  const fault = faultOf(key);
  if (fault)
    throw new StoreError(`The object key ${JSON.stringify(key.slice(0, 200))} is refused: ${fault}.`, {
      retryable: false,
    });
}

function faultOf(key: string): string | undefined {
  if (key === '') return 'it is empty';
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `it is longer than ${MAX_KEY_BYTES} bytes`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f\\]/.test(key)) return 'it has control characters or backslashes';
  const segments = key.split('/');
  if (segments.includes('')) return 'it has an empty segment';
  // `..` would leave the folder; a leading dot is kept for the folder store's own files.
  if (segments.some((segment) => segment.startsWith('.'))) return 'a segment begins with a dot';
  return undefined;
}
