import type { Edit } from './markdown.ts';
import { mentionEdits } from './references.ts';

/** Tags that change nothing but the look, and only without attributes. */
const HARMLESS = new Set(['br', 'details', 'kbd', 'sub', 'summary', 'sup']);
const TAG = /<(\/?)([A-Za-z][A-Za-z0-9-]*)([^<>]*)>|</g;

/**
 * Raw HTML: a tag outside the list, a comment, a declaration is shown as text instead; so is the end of a
 * `<details>` that the text did not open. `details.open` counts on over the nodes of a document.
 */
export function* htmlEdits(html: string, details: { open: number }): Generator<Edit> {
  for (const match of html.matchAll(TAG)) {
    if (!isHarmless(match, details)) yield { offset: match.index, length: 1, text: '&lt;' };
  }
  // Text here, an image to a parser that sees a table in these lines.
  for (const { index } of html.matchAll(/!(?=\[)/g)) yield { offset: index, length: 1, text: '(image) ' };
  yield* mentionEdits(html);
}

function isHarmless([, slash, name, rest]: RegExpMatchArray, details: { open: number }): boolean {
  if (name === undefined || !HARMLESS.has(name.toLowerCase())) return false;
  const isDetails = name.toLowerCase() === 'details';
  const attributes = rest?.trim() ?? '';
  if (attributes !== '' && attributes !== '/' && !(isDetails && attributes === 'open')) return false;
  if (!isDetails) return true;
  if (slash === '') details.open += 1;
  else if (details.open === 0) return false;
  else details.open -= 1;
  return true;
}
