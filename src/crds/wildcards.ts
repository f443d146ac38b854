/**
 * What `*` (any number of characters, also none) and `?` (one) in the globs of the API mean, over the whole text. The
 * caller says what a character is: a string is compared by UTF-16 units, an array by its items. Linear in practice and
 * quadratic at worst, since only the last star is ever retried: no pattern can stall it.
 */
export function matchesWildcards(pattern: ArrayLike<string>, text: ArrayLike<string>): boolean {
  let at = 0;
  let from = 0;
  let star = -1;
  let starFrom = 0;
  while (from < text.length) {
    if (pattern[at] === '*') {
      star = at++;
      starFrom = from;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[from])) {
      at++;
      from++;
    } else if (star >= 0) {
      at = star + 1;
      from = ++starFrom;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}
