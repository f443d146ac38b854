/**
 * Whole-text, case-sensitive match; `*` stands for any characters (also none, also `/`), `?` for one.
 * Linear in practice and quadratic at worst, since only the last star is ever retried: no pattern can stall it.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const wanted = Array.from(pattern);
  const given = Array.from(text);
  let at = 0;
  let from = 0;
  let star = -1;
  let starFrom = 0;
  while (from < given.length) {
    if (wanted[at] === '*') {
      star = at++;
      starFrom = from;
    } else if (at < wanted.length && (wanted[at] === '?' || wanted[at] === given[from])) {
      at++;
      from++;
    } else if (star >= 0) {
      at = star + 1;
      from = ++starFrom;
    } else {
      return false;
    }
  }
  while (wanted[at] === '*') at++;
  return at === wanted.length;
}
