/**
 * A titled block of text that is not ours, in a fence longer than any inside it: nothing in it can end the block and
 * speak as somebody else.
 */
export function block(title: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `## ${title}\n\n${fence}\n${text.trimEnd()}\n${fence}\n`;
}

/** One line of a header: what is not ours loses its line breaks and controls. */
export function line(label: string, text: string): string {
  return `- ${label}: ${text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 500)}\n`;
}
