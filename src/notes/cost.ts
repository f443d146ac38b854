/**
 * Whether parsing a text would take time out of proportion. The parser compares every emphasis run and every
 * bracket of a paragraph with those before it, and every quoted or listed line with its containers; whoever
 * writes the text could stop the whole process with 60 KB of `_a*`. Measured on one core: at each of these
 * limits some 0.2 s.
 */
export function isCostly(text: string): boolean {
  if (text.length > MAX_LENGTH || TOO_DEEP.test(text)) return true;
  if (
    count(text, QUOTED_LINE) > 1_000 ||
    count(text, LISTED_LINE) > 2_000 ||
    count(text, TABLE_LINE) > 1_500
  ) {
    return true;
  }
  return text
    .split(BLANK_LINES)
    .some((block) => count(block, EMPHASIS) > 1_500 || count(block, OPENING) > 2_000);
}

const MAX_LENGTH = 64 * 1024;
/** More quotes and lists inside one another than anybody reads; the parser's stack ends at some thousands. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-+*]|\d{1,9}[.)])){32}/m;
const QUOTED_LINE = /^[ \t]*>/gm;
const LISTED_LINE = /^[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/gm;
const TABLE_LINE = /^.*\|/gm;
/** No paragraph reaches over one of these. */
const BLANK_LINES = /\n[ \t>]*\n/;
/** An underscore between letters, as in names, neither opens nor closes. */
const EMPHASIS = /\*+|~+|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])/g;
/** What may begin a link, a tag or a code span. */
const OPENING = /[[<]|`+/g;

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
