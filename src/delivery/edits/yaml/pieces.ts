/**
 * Cuts a long text of one block mapping into pieces of about `size` characters, each of which is such a mapping as
 * well, so that they can be parsed one after the other: the parser needs a hundred times what it reads. Undefined:
 * it is short, or not certainly of that kind. Whoever parses a piece and finds something else has to take it whole.
 */
export function pieces(
  text: string,
  size: number,
): readonly (readonly [start: number, end: number])[] | undefined {
  if (text.length <= size || !isOneDocument(text)) return undefined;
  const found: [number, number][] = [];
  let start = 0;
  while (start < text.length) {
    // Nothing but a key of the outermost mapping begins a line like this: quotes and brackets that are open here
    // make the piece before it an error.
    KEY.lastIndex = start + size;
    const cut = KEY.exec(text);
    const end = cut ? cut.index + 1 : text.length;
    found.push([start, end]);
    start = end;
  }
  return found.length > 1 ? found : undefined;
}

const KEY = /\n[A-Za-z0-9_"'/]/g;

/** Without directives, and with no mark of a document but one in front. */
function isOneDocument(text: string): boolean {
  const first = /^(?:---|\.\.\.|%)/m.exec(text);
  if (first === null) return true;
  const head = text.slice(0, first.index);
  if (
    !/^\ufeff?(?:[ \t]*(?:#.*)?\r?\n)*$/.test(head) ||
    !/^---\r?\n/.test(text.slice(first.index, first.index + 5))
  )
    return false;
  return !/^(?:---|\.\.\.|%)/m.test(text.slice(first.index + 3));
}
