import { WORD_JOINER } from './characters.ts';
import type { Edit } from './markdown.ts';

/** Edits of prose: what GitLab would read as a reference with an effect is cut by an invisible character. `next` stands behind it in the source. */
export function* textEdits(text: string, next = ''): Generator<Edit> {
  yield* mentionEdits(text);
  // What follows is a node of its own here, such as an address of mail.
  if (text.endsWith('@') && /\w/.test(next)) yield { offset: text.length, length: 0, text: WORD_JOINER };
  // A tag or comment that does not end here might where somebody else looks for it.
  for (const { index } of text.matchAll(/<(?=[A-Za-z/!?])/g))
    yield { offset: index, length: 1, text: '&lt;' };
  // A placeholder of GitLab's, replaced when shown.
  for (const { index } of text.matchAll(/%(?=\{)/g))
    yield { offset: index + 1, length: 0, text: WORD_JOINER };
}

/** An `@`, also escaped or as an entity, that something like a name follows. In an address of mail a letter stands before it; an underscore may end an emphasis. */
const MENTION = /(?:&#0*64;|&#x0*40;|&commat;|(?<![A-Za-z0-9])@|(?<=@[\w.\u2060-]*)@)(?=[A-Za-z0-9_\\&])/gi;

/** Users and groups are notified of a mention. */
export function* mentionEdits(text: string): Generator<Edit> {
  for (const match of text.matchAll(MENTION)) {
    yield { offset: match.index + match[0].length, length: 0, text: WORD_JOINER };
  }
}

/**
 * `Closes #1` closes an issue where GitLab reads it as part of a description or a commit. Looked for in the whole
 * source, because the address of an issue is a node of its own.
 */
export const CLOSING =
  /(?<![A-Za-z0-9])(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)(?=:? +(?:issues? +)?(?:[\w./-]*[#!]\d|<?https?:\/\/|[A-Z][A-Z0-9_]+-\d))/gi;
