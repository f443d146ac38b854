/**
 * Text of a repository, a chart or helm as code in a line of Markdown: whatever it holds, it ends no line, no code,
 * and begins no list, link or HTML. Cut to `maxCharacters`.
 */
export function code(text: string, maxCharacters = 300): string {
  const line = inLine(text, maxCharacters);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  // A space stands between the fence and a backtick; both are taken away again when it is shown.
  return line === ''
    ? '` `'
    : /^`|`$|^ .* $/.test(line)
      ? `${fence} ${line} ${fence}`
      : `${fence}${line}${fence}`;
}

/** One line without control, direction and zero-width characters: what is seen is what is there. */
export function inLine(text: string, maxCharacters: number): string {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replace(/[\p{Cf}\p{Co}\p{Cs}]/gu, '�')
    .trim();
  const characters = [...line];
  return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters).join('')}…` : line;
}
