/** Whether an entry of a rule's `title` is a regular expression, written `/…/`, rather than a glob. */
export const isTitleRegex = (pattern: string): boolean =>
  pattern.length > 2 && pattern.startsWith('/') && pattern.endsWith('/');

/** Why an entry of a rule's `title` can never match anything; undefined when it can be used. */
export function titleProblem(pattern: string): string | undefined {
  if (!isTitleRegex(pattern)) return undefined;
  try {
    new RegExp(pattern.slice(1, -1), 'u');
    return undefined;
  } catch (error) {
    return `is not a regular expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}
