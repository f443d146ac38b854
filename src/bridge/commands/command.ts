/** A note that is a command. */
export interface Command {
  /** First word after the prefix, in lower case; empty when there is none. */
  readonly name: string;
  /** What stands behind that word, as it was written. */
  readonly rest: string;
}

/**
 * The command that a note begins with. Only the beginning counts, so none is found in a quote, in code or in a
 * fence: each of these begins with a character of its own, and four blanks or a tab begin code as well.
 */
export function commandOf(text: string, prefix: string): Command | undefined {
  const [before = '', indent = ''] = BEFORE.exec(text) ?? [];
  if (indent.length > 3 || !text.startsWith(prefix, before.length)) return undefined;
  const behind = text.slice(before.length + prefix.length);
  if (behind !== '' && !/^\s/.test(behind)) return undefined;
  const [, name = '', rest = ''] = /^(\S*)\s*(.*)$/s.exec(behind.trim()) ?? [];
  return { name: name.toLowerCase(), rest };
}

/** Blank lines, then the blanks that the first line begins with. */
const BEFORE = /^(?:[ \t]*(?:\r\n|\r|\n))*( *)/;
