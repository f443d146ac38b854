/** Marks each try to repair a merge request, in GitLab itself: it survives restarts, and people can take it off. */
const ATTEMPT = /^hummingbird\/attempt-(\d+)$/;

export const attemptLabel = (attempt: number): string => `hummingbird/attempt-${attempt}`;

/** The highest number, not the count: a label that somebody took off in the middle opens nothing. */
export const attemptsOf = (labels: readonly string[]): number =>
  Math.max(0, ...labels.map((label) => Number(ATTEMPT.exec(label)?.[1] ?? 0)));
