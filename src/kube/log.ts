/** What this room needs of a logger; pino's Logger is one. Fields never hold credentials. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** For log fields: the message, a KubeError's reason, no stack. */
export function errorFields(error: unknown): { readonly error: string; readonly reason?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const reason = 'reason' in error && typeof error.reason === 'string' ? { reason: error.reason } : {};
  return { error: error.message, ...reason };
}
