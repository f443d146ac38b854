/** Invisible, does not allow a line break, and is no letter: put behind an `@` it ends every mention. */
export const WORD_JOINER = '\u2060';
