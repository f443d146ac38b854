/**
 * The known word that a mistyped one most likely means; undefined when none is near. A third of its letters may be
 * wrong, at most three.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const allowed = Math.min(3, Math.floor(word.length / 3));
  const plain = (text: string): string => text.toLowerCase().replaceAll('-', '_');
  const [best] = known
    .map((one) => ({ one, distance: editDistance(plain(word), plain(one)) }))
    .filter(({ distance }) => distance <= allowed)
    .sort((a, b) => a.distance - b.distance);
  return best?.one;
}

/** Levenshtein's, row by row. Words are short: keys of a file. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
