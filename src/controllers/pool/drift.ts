/**
 * Whether everything that `desired` says stands in `actual`. What the API server or others have added beside it
 * does not count, except to lists: those are whole. An empty list and an absent one are the same.
 */
export function covers(actual: unknown, desired: unknown): boolean {
  if (Array.isArray(desired)) {
    const list = actual === undefined ? [] : actual;
    return (
      Array.isArray(list) &&
      list.length === desired.length &&
      desired.every((item, at) => covers(list[at], item))
    );
  }
  if (isRecord(desired)) {
    return isRecord(actual) && Object.entries(desired).every(([key, value]) => covers(actual[key], value));
  }
  return actual === desired;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
