/** Reasons that callers act on; what the API server calls otherwise is `Other` and keeps its words in the message. */
export type KubeErrorReason =
  | 'AlreadyExists'
  | 'BadRequest'
  | 'Conflict'
  | 'Expired'
  | 'Forbidden'
  | 'InternalError'
  | 'Invalid'
  | 'InvalidResponse'
  | 'MethodNotAllowed'
  | 'NotFound'
  | 'RequestEntityTooLarge'
  | 'ResponseTooLarge'
  | 'ServiceUnavailable'
  | 'Timeout'
  | 'TooManyRequests'
  | 'Unauthorized'
  | 'Unreachable'
  | 'UnsupportedMediaType'
  | 'Other';

/** Whether the very same request may succeed later, and what a person can do about it. */
const REASONS: Readonly<Record<KubeErrorReason, { readonly retryable: boolean; readonly hint?: string }>> = {
  AlreadyExists: { retryable: false },
  BadRequest: { retryable: false },
  Conflict: { retryable: false, hint: 'read the object again and decide anew' },
  Expired: { retryable: false, hint: 'list again' },
  Forbidden: { retryable: false, hint: 'check the Role and RoleBinding of this identity' },
  InternalError: { retryable: true },
  Invalid: { retryable: false },
  InvalidResponse: { retryable: true, hint: 'check what answers at this address' },
  MethodNotAllowed: { retryable: false },
  NotFound: { retryable: false },
  RequestEntityTooLarge: { retryable: false, hint: 'make the object smaller' },
  ResponseTooLarge: { retryable: false, hint: 'ask for smaller pages' },
  ServiceUnavailable: { retryable: true },
  Timeout: { retryable: true },
  TooManyRequests: { retryable: true },
  Unauthorized: { retryable: false, hint: 'check the token or client certificate' },
  Unreachable: { retryable: true, hint: 'check the address and that the API server runs' },
  UnsupportedMediaType: { retryable: false },
  Other: { retryable: false },
};

const BY_STATUS: Readonly<Record<number, KubeErrorReason>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  502: 'ServiceUnavailable',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

export interface KubeErrorOptions {
  /** HTTP status; absent when no answer arrived. */
  readonly status?: number;
  readonly reason: KubeErrorReason;
  readonly message: string;
  /** What was asked, as `GET pods/hummingbird/name`. */
  readonly where: string;
  /** The server's own wish (Retry-After or details.retryAfterSeconds). */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** A refusal of the API server, or no usable answer. The message reads "where: what (reason); what to do". */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly status: number | undefined;
  readonly reason: KubeErrorReason;
  /** The same request may succeed later. False for Conflict: that one needs a fresh read first. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly where: string;

  constructor(options: KubeErrorOptions) {
    const { retryable, hint } = REASONS[options.reason];
    super(`${options.where}: ${options.message} (${options.reason})${hint ? `; ${hint}` : ''}`, {
      cause: options.cause,
    });
    this.status = options.status;
    this.reason = options.reason;
    this.retryable = retryable || (options.status !== undefined && options.status >= 500);
    this.retryAfterMs = options.retryAfterMs;
    this.where = options.where;
  }
}

/** True for a KubeError with one of these reasons. */
export function isKubeError(error: unknown, ...reasons: readonly KubeErrorReason[]): error is KubeError {
  return error instanceof KubeError && (reasons.length === 0 || reasons.includes(error.reason));
}

/**
 * The error for an answer with a status of 400 or more, or for the object of a watch's ERROR event.
 * `body` is the parsed `metav1.Status` when there was one, else the text of the answer.
 */
export function errorFromStatus(options: {
  readonly where: string;
  readonly status: number;
  readonly body: unknown;
  readonly retryAfterHeader?: string | undefined;
}): KubeError {
  const status = asRecord(options.body);
  const text = typeof options.body === 'string' ? options.body.trim().slice(0, 500) : '';
  const message = typeof status['message'] === 'string' ? status['message'] : '';
  const retryAfterMs = retryAfter(options.retryAfterHeader, asRecord(status['details'])['retryAfterSeconds']);
  return new KubeError({
    where: options.where,
    status: options.status,
    reason: reasonOf(status['reason'], options.status),
    message: message || text || `HTTP status ${options.status}`,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function reasonOf(named: unknown, status: number): KubeErrorReason {
  if (named === 'Gone') return 'Expired';
  if (named === 'ServerTimeout') return 'Timeout';
  if (typeof named === 'string' && Object.hasOwn(REASONS, named)) return named as KubeErrorReason; // own key of REASONS
  return BY_STATUS[status] ?? (status >= 500 ? 'InternalError' : 'Other');
}

function retryAfter(header: string | undefined, detail: unknown): number | undefined {
  const fromHeader = header === undefined ? Number.NaN : Number(header);
  if (Number.isFinite(fromHeader) && fromHeader >= 0) return fromHeader * 1000;
  return typeof detail === 'number' && detail > 0 ? detail * 1000 : undefined;
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
