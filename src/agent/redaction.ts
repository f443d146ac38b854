/** Replaces secrets in a text by a fixed word; must leave everything else as it is. */
export type Redact = (text: string) => string;

export const redactNothing: Redact = (text) => text;

/** Applies it to every string of a JSON value, keys included: tool results may carry secrets anywhere. */
export function redactJson(value: unknown, redact: Redact): unknown {
  if (redact === redactNothing) return value;
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactJson(item, redact));
  if (typeof value === 'object' && value !== null) return redactObject(value, redact);
  return value;
}

export function redactObject(value: object, redact: Redact): Readonly<Record<string, unknown>> {
  if (redact === redactNothing) return { ...value };
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redact(key), redactJson(item, redact)]),
  );
}
