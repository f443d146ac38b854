/** Objects by key, in a bucket or a folder. Keys are `/`-separated, without a leading slash. */
export interface ObjectStore {
  /** `s3://bucket/` or `file:///dir/`: for messages and status. */
  readonly location: string;
  /**
   * Streams in constant memory. With `ifNoneMatch` an existing object is kept and `AlreadyExists` returned.
   * Retries are inside; throws `StoreError`.
   */
  put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options?: PutOptions): Promise<PutResult>;
  /** Undefined when there is none. */
  get(key: string, signal?: AbortSignal): Promise<StoredObject | undefined>;
  /** True when an object was deleted. */
  delete(key: string): Promise<boolean>;
  /** Keys below the prefix, in order. */
  list(prefix: string): AsyncIterable<string>;
}

export interface PutOptions {
  readonly ifNoneMatch?: boolean;
  /** Replace only when the stored object still has this etag; else `Conflict`. */
  readonly ifMatch?: string;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

export type PutResult =
  | { readonly kind: 'Stored'; readonly etag: string; readonly sha256: string; readonly bytes: number }
  | { readonly kind: 'AlreadyExists' }
  | { readonly kind: 'Conflict' };

export interface StoredObject {
  readonly body: AsyncIterable<Uint8Array>;
  readonly etag: string;
  readonly bytes: number;
}

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly retryable: boolean;
  constructor(message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
  }
}
