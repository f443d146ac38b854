import { matchesWildcards } from '../../crds/wildcards.ts';

/** Whole-text, case-sensitive match; `*` stands for any characters (also none, also `/`), `?` for one. */
export const matchesGlob = (pattern: string, text: string): boolean =>
  matchesWildcards(Array.from(pattern), Array.from(text));
