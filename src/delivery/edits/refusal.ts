/** Why an edit was not made; a label of metrics. */
export const REFUSAL_REASONS = [
  /** Denied, not in scope, or not allowed. */
  'PathDenied',
  /** A version or digest that the evidence does not have. */
  'NotCorroborated',
  /** The path leaves the repository, crosses a link, or is spelled to deceive. */
  'UnsafePath',
  /** There is no such file, or it cannot be read as what is edited. */
  'Unreadable',
  /** No scalar has that key. */
  'UnknownKey',
  /** There is such a key, and it is no scalar of its own, or an edit would change more than it. */
  'NotEditable',
  /** `from` is not what the file says now. */
  'Stale',
  /** Not one line of text, or nothing would change. */
  'Malformed',
  /** `to` is of another type, or YAML's versions read what is there differently. */
  'TypeChange',
  /** The file with the edit in it did not read as it should: a fault of ours, caught. */
  'ReadBack',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

export interface Refusal {
  readonly reason: RefusalReason;
  /** One sentence without its subject, for people; it quotes what is in the repository. */
  readonly message: string;
}
