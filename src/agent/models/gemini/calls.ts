import type { FunctionCall, GeminiContent } from './wire.ts';

/** The function calls of one entry, in its order. */
export function callsOf({ role, parts }: GeminiContent): readonly FunctionCall[] {
  return role === 'model' ? parts.flatMap(({ functionCall }) => functionCall ?? []) : [];
}

/**
 * An id for every call of a conversation, by entry: the API's own, else one made from the call's place, so that
 * the same history gives the same ids.
 */
export function callIds(history: readonly GeminiContent[]): readonly (readonly string[])[] {
  const taken = new Set(history.flatMap((entry) => callsOf(entry).flatMap(({ id }) => id ?? [])));
  const given = new Set<string>();
  return history.map((entry, entryIndex) =>
    callsOf(entry).map(({ id }, index) => {
      const own = id !== undefined && id !== '' && !given.has(id) ? id : undefined;
      const chosen = own ?? freeId(new Set([...taken, ...given]), entryIndex, index);
      given.add(chosen);
      return chosen;
    }),
  );
}

function freeId(taken: ReadonlySet<string>, entry: number, index: number): string {
  let id = `call_${entry}_${index}`;
  while (taken.has(id)) id += '_';
  return id;
}
