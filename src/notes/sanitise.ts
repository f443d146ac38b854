import type { Nodes, Root } from 'mdast';
import { visibleText } from '../http/visible-text.ts';
import { WORD_JOINER } from './characters.ts';
import { isCostly } from './cost.ts';
import { htmlEdits } from './html.ts';
import { ADDRESS, carriesData, isOddAddress } from './links.ts';
import { applyEdits, type Edit, nodesOf, parseMarkdown, type Range, rangeOf } from './markdown.ts';
import { CLOSING, mentionEdits, textEdits } from './references.ts';

export interface SanitiseOptions {
  /** Links to these may carry data in their address. Lower case, without port. Default: none. */
  readonly trustedHosts?: readonly string[];
}

/** Neutralising one construct may uncover another (an HTML block becomes Markdown); real texts need two rounds. */
const MAX_ROUNDS = 8;
/**
 * Markdown of a model as Markdown that has no effect on GitLab but being read: no quick action, mention, issue
 * closing, external image, link that carries data out, HTML beyond a few harmless tags, comment, or invisible
 * character. What is harmless stays as it was, byte for byte. A text that is too costly to parse (64 KiB
 * and more) is shown as it is, in a code block. A second pass changes nothing that can be seen.
 */
export function sanitise(source: string, { trustedHosts = [] }: SanitiseOptions = {}): string {
  const text = visibleText(source).trimEnd();
  try {
    return inert(text, trustedHosts) ?? asCodeBlock(text);
  } catch (error) {
    if (error instanceof RangeError) return asCodeBlock(text);
    throw error;
  }
}

/** Undefined when the text is too costly or does not come to rest. */
function inert(source: string, trustedHosts: readonly string[]): string | undefined {
  let text = source;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (isCostly(text)) return undefined;
    const { root, isClosed } = parseWithEnd(text);
    const edits = [...nodeEdits(text, root, trustedHosts), ...lineEdits(text, root)];
    if (edits.length === 0) return isClosed && openDetails(text, root) === 0 ? text : closed(text, root);
    text = applyEdits(text, edits);
  }
  return undefined;
}

/** The text as it stands, without any meaning. */
export function asCodeBlock(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text.replace(QUICK_ACTION, ' $&')}\n${fence}`;
}

/** GitLab knows its commands by name; any word counts here, since names come and go. */
const QUICK_ACTION = /^\/[a-z_][\w-]*(?=\s|$)/gim;
/** GitLab's own block quote: its lines would make GitLab see other blocks than we do. */
const FENCED_QUOTE = /^[ \t]*>{3,}[ \t]*$/gm;
/** `[[page]]` is a link of GitLab's wikis, read before code spans are. */
const WIKI_LINK = /(?<!\\)\[(?=\[)/g;
/** A first line that opens front matter hides the lines up to its end from Markdown. */
const FRONT_MATTER = /^\s*(?:.*coding:.*\n\s*)?(?=---|\+\+\+|;;;)/;

function* nodeEdits(source: string, root: Root, trustedHosts: readonly string[]): Generator<Edit> {
  const details = { open: 0 };
  const targets = definitionsOf(root);
  for (const { node, parent } of nodesOf(root)) {
    const range = rangeOf(node);
    const slice = source.slice(range.start, range.end);
    if (node.type === 'html') yield* at(range, [...htmlEdits(slice, details)]);
    else if (node.type === 'code') {
      yield* at(range, infoEdits(slice));
      // Parsers disagree on what is indented enough behind a list's marker.
      if (parent?.type === 'listItem' && !/^[`~]/.test(slice)) yield* at(range, [...mentionEdits(slice)]);
    } else if (node.type === 'text')
      yield* at(range, [
        ...(isBareAddress(parent, slice, range)
          ? strayMentions(slice, source[range.start - 1])
          : [...textEdits(slice, source[range.end]), ...addressEdits(slice, trustedHosts)]),
      ]);
    else if (node.type === 'image' || node.type === 'imageReference')
      yield* imageEdits(targets, node, parent, range);
    else if (node.type === 'link' || node.type === 'definition') {
      if (isRefusedTarget(node.url))
        yield insertion(range.start, '\\', slice.startsWith('<') ? 'escape' : 'insert');
      else if (
        carriesData(node.url, trustedHosts) ||
        (!slice.startsWith('[') && isOddAddress(slice.replace(/^<|>$/g, '')))
      )
        yield* unlinked(source, node, range);
    }
    if (parent?.type === 'root') yield* dollarEdits(source, node);
  }
}

function* lineEdits(source: string, root: Root): Generator<Edit> {
  for (const { index, literal } of matchesOf(QUICK_ACTION, source, root)) {
    // A backslash would be seen in code, a blank would be lost at the start of a paragraph.
    yield { offset: index, length: 0, text: literal === undefined ? '\\' : ' ' };
  }
  for (const { index, text, literal } of matchesOf(FENCED_QUOTE, source, root)) {
    if (literal === undefined) yield { offset: index + text.indexOf('>'), length: 0, text: '\\' };
  }
  for (const { index, literal } of matchesOf(WIKI_LINK, source, root)) {
    if (literal === undefined) yield { offset: index, length: 0, text: '\\' };
  }
  for (const { index, literal } of matchesOf(CLOSING, source, root)) {
    // The text between tags is read like any other.
    if (literal !== 'code') yield { offset: index + 1, length: 0, text: WORD_JOINER };
  }
  const front = FRONT_MATTER.exec(source);
  if (front !== null) yield { offset: front[0].length, length: 0, text: '\\' };
}

/** Matches in order, each with the code or HTML in which it starts. */
function* matchesOf(pattern: RegExp, source: string, root: Root) {
  const literals = [...nodesOf(root)]
    .filter(({ node }) => node.type === 'code' || node.type === 'inlineCode' || node.type === 'html')
    .map(({ node }) => ({
      ...rangeOf(node),
      kind: node.type === 'html' ? ('html' as const) : ('code' as const),
    }));
  let next = 0;
  for (const { 0: text, index } of source.matchAll(pattern)) {
    while ((literals[next]?.end ?? Number.POSITIVE_INFINITY) <= index) next += 1;
    const at = literals[next];
    yield { text, index, literal: at !== undefined && at.start <= index ? at.kind : undefined };
  }
}

/** `/uploads/<secret>/<file>` of the project: no way leads out of it. */
const UPLOAD = /^\/uploads\/[\da-f]+\/[\w%-][\w.%-]*$/i;

/** Uploads of the project itself stay; everything else would be fetched when the note is read. */
function* imageEdits(
  targets: ReadonlyMap<string, string>,
  node: Extract<Nodes, { type: 'image' | 'imageReference' }>,
  parent: Nodes | undefined,
  { start, end }: Range,
): Generator<Edit> {
  const url = node.type === 'image' ? node.url : targets.get(node.identifier);
  if (url === undefined || UPLOAD.test(url)) return;
  if (parent?.type === 'link' || parent?.type === 'linkReference') {
    const words = (node.alt ?? '').replace(/[^\p{L}\p{N} .,:-]/gu, ' ').trim();
    yield { offset: start, length: end - start, text: `image: ${words}` };
  } else {
    yield { offset: start, length: 1, text: '(image) ' };
  }
}

/** Targets of link definitions; of two with one name the first one counts. */
function definitionsOf(root: Root): Map<string, string> {
  const targets = new Map<string, string>();
  for (const { node } of nodesOf(root)) {
    if (node.type === 'definition' && !targets.has(node.identifier)) targets.set(node.identifier, node.url);
  }
  return targets;
}

/** The link's words, and its address as code: to be read, not to be followed. */
function* unlinked(
  source: string,
  node: Extract<Nodes, { type: 'link' | 'definition' }>,
  { start, end }: Range,
): Generator<Edit> {
  const last = node.type === 'link' ? node.children.at(-1) : undefined;
  const first = node.type === 'link' ? node.children[0] : undefined;
  if (node.type === 'definition' || first === undefined || last === undefined || source[start] !== '[') {
    yield { offset: start, length: end - start, text: asCode(source.slice(start, end)) };
    return;
  }
  const words = rangeOf(last).end;
  yield { offset: start, length: rangeOf(first).start - start, text: '' };
  yield { offset: words, length: end - words, text: ` (${asCode(node.url)})` };
}

function* addressEdits(text: string, trustedHosts: readonly string[]): Generator<Edit> {
  for (const { 0: address, index } of text.matchAll(ADDRESS)) {
    if (!carriesData(address, trustedHosts) && !isOddAddress(address)) continue;
    yield { offset: index, length: address.length, text: asCode(address) };
  }
}

/** A bar behind an opening fence: some parsers see a table there, and no code. */
const infoEdits = (code: string): Edit[] =>
  [...(/^(?:`{3,}|~{3,}).*/.exec(code)?.[0] ?? '').matchAll(/\|/g)].map(({ index }) => ({
    offset: index,
    length: 1,
    text: ' ',
  }));

/** Where another parser may end the address, what follows would be prose; written like this it means the same. */
function* strayMentions(address: string, before = ' '): Generator<Edit> {
  const isPlain = /[\s<>(*_~"'|]/.test(before);
  const stray = isPlain ? /(?<![\w/.-])@|&#0*64;|&#x0*40;|&commat;/gi : /@|&#0*64;|&#x0*40;|&commat;/gi;
  for (const { 0: found, index } of address.matchAll(stray)) {
    yield { offset: index, length: found.length, text: '%40' };
  }
}

function asCode(text: string): string {
  const plain = text.replace(/[\s`|]+/g, ' ').trim();
  return `\`${plain}\``;
}

/** A link that names a user is a mention as well; other schemes than these do more than lead somewhere. */
function isRefusedTarget(url: string): boolean {
  const target = decoded(url).replace(/^[\s\p{C}]+/u, '');
  if (target.startsWith('@')) return true;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(target)?.[1]?.toLowerCase();
  return scheme !== undefined && !['http', 'https', 'mailto'].includes(scheme);
}

function decoded(url: string): string {
  try {
    return decodeURIComponent(url);
  } catch {
    return url.replace(/%40/g, '@');
  }
}

/** `$…$` is mathematics on GitLab, read before code spans are: two of them could cut one open. */
function* dollarEdits(source: string, block: Nodes): Generator<Edit> {
  const { start, end } = rangeOf(block);
  if (block.type === 'code' || source.slice(start, end).split('$').length < 3) return;
  for (const { node } of nodesOf(block)) {
    if (node.type !== 'text') continue;
    const range = rangeOf(node);
    const slice = source.slice(range.start, range.end);
    yield* at(
      range,
      [...slice.matchAll(/(?<!\\)\$/g)].map(({ index }) => ({ offset: index, length: 0, text: '\\' })),
    );
  }
}

/**
 * An address that is its own text, in which GitLab looks for no references. GitLab takes everything up to a blank
 * or `>` for the address when it has a scheme, so that it never ends before ours; `www.` alone is text to it.
 */
function isBareAddress(parent: Nodes | undefined, slice: string, text: Range): boolean {
  if (parent?.type !== 'link' || !/^https?:\/\//i.test(slice)) return false;
  const link = rangeOf(parent);
  return text.start - link.start === link.end - text.end && text.start - link.start <= 1;
}

const at = ({ start }: Range, edits: readonly Edit[]): Edit[] =>
  edits.map((edit) => ({ ...edit, offset: edit.offset + start }));

const insertion = (offset: number, text: string, how: 'insert' | 'escape'): Edit =>
  how === 'escape' ? { offset, length: 1, text: '&lt;' } : { offset, length: 0, text };

/** Ends what the text left open, so that what we write after it stands on its own. */
function closed(source: string, root: Root): string | undefined {
  let text = source;
  const last = root.children.at(-1);
  if (last?.type === 'code' && !parseWithEnd(text).isClosed) {
    const { start } = rangeOf(last);
    const fence = /^[`~]+/.exec(text.slice(start))?.[0] ?? '```';
    text += `\n${fence}`;
  }
  const open = openDetails(text, root);
  if (open > 0) text += `\n\n${'</details>'.repeat(open)}`;
  return parseWithEnd(text).isClosed ? text : undefined;
}

const SENTINEL = `<!-- ${WORD_JOINER} -->`;

/** `isClosed`: what we write after the text is not taken for a part of it. The tree is the text's alone. */
function parseWithEnd(text: string): { readonly root: Root; readonly isClosed: boolean } {
  const root = parseMarkdown(`${text}\n\n${SENTINEL}`);
  const last = root.children.at(-1);
  const isClosed = last?.type === 'html' && last.value === SENTINEL;
  if (isClosed) root.children.pop();
  return { root, isClosed };
}

function openDetails(source: string, root: Root): number {
  const details = { open: 0 };
  for (const { node } of nodesOf(root)) {
    if (node.type !== 'html') continue;
    const { start, end } = rangeOf(node);
    // Counting is a side effect of reading the tags; there is nothing left to edit.
    for (const _edit of htmlEdits(source.slice(start, end), details));
  }
  return details.open;
}
