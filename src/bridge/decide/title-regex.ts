import vm from 'node:vm';

export type RegexMatch =
  | { readonly ok: true; readonly matches: boolean }
  | { readonly ok: false; readonly message: string };

/**
 * `pattern` is written `/…/`. Whoever opens a merge request chooses the title, so a pattern that backtracks
 * without end must not stall the bridge: V8 can be stopped inside a regular expression, but only through `vm`.
 */
export function matchesTitleRegex(pattern: string, title: string): RegexMatch {
  const first = tried(pattern, title, TIMEOUT_MS);
  const found = first === 'TooLong' ? tried(pattern, title, PATIENT_TIMEOUT_MS) : first;
  if (found !== 'TooLong') return found;
  return {
    ok: false,
    message: `${pattern} took longer than ${PATIENT_TIMEOUT_MS} ms on this title; make it simpler`,
  };
}

function tried(pattern: string, title: string, timeout: number): RegexMatch | 'TooLong' {
  try {
    const matches: unknown = test.runInNewContext({ source: pattern.slice(1, -1), title }, { timeout });
    return { ok: true, matches: matches === true };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return 'TooLong';
    return { ok: false, message: `${pattern} is not a regular expression: ${problemOf(error)}` };
  }
}

/** A title has at most 255 characters; a sound pattern needs microseconds for it. */
const TIMEOUT_MS = 50;
/** Time goes by the clock: on a busy machine a sound pattern may wait longer than that for its turn. */
const PATIENT_TIMEOUT_MS = 1_000;

const test = new vm.Script('new RegExp(source, "u").test(title)');

/** Errors of another context are not instances of this context's Error. */
function problemOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error
    ? String(error.message)
    : String(error);
}
