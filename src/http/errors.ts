export interface HttpErrorOptions {
  /** Absent when no answer came (connection, timeout, refused address, body over its cap). */
  readonly status?: number;
  /** Whether the same request may succeed later. Says nothing about whether a write was applied. */
  readonly retryable: boolean;
  /** The server's wish (Retry-After), not capped. */
  readonly retryAfterMs?: number;
  readonly method: string;
  /** Without user info and with the values of secret query parameters removed. */
  readonly url: string;
  /** First bytes of the answer, redacted. */
  readonly bodyExcerpt?: string;
  /** What a server that answered 401 wants to be shown (`WWW-Authenticate`). */
  readonly challenge?: string;
  /** Kind of failure where there is no status. */
  readonly code?:
    | 'Connection'
    | 'Timeout'
    | 'TooLarge'
    | 'RefusedAddress'
    | 'RefusedRedirect'
    | 'Interrupted'
    | 'NotJson';
  readonly cause?: unknown;
}

/** A request that did not end in a 2xx answer. The message names method, URL and what came back. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly method: string;
  readonly url: string;
  readonly bodyExcerpt: string | undefined;
  readonly challenge: string | undefined;
  readonly code: HttpErrorOptions['code'] | undefined;

  constructor(message: string, options: HttpErrorOptions) {
    super(message, { cause: options.cause });
    this.status = options.status;
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
    this.method = options.method;
    this.url = options.url;
    this.bodyExcerpt = options.bodyExcerpt;
    this.challenge = options.challenge;
    this.code = options.code;
  }
}
