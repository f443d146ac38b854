import type { MarkerKey } from '../../src/notes/marker.ts';
import { parseMarker } from '../../src/notes/marker.ts';
import { extractCommands } from '../fakes/gitlab/quick-actions.ts';
import { read } from './reader.ts';

/** What Markdown makes, and the few tags that a note may bring itself. */
const ELEMENTS = new Set(
  [
    'a blockquote br code del details em h1 h2 h3 h4 h5 h6 hr img kbd li ol p pre s strong sub summary sup',
    'table tbody td th thead tr ul input',
  ].flatMap((names) => names.split(' ')),
);
const ATTRIBUTES = new Set(['href', 'src', 'alt', 'title', 'class', 'style', 'start', 'open']);
/** Relative, or of a scheme that only leads somewhere. */
const ALLOWED = /^(?:https?:|mailto:|(?![a-z][a-z0-9+.-]*:))/i;
const MENTION = /(?<![A-Za-z0-9_])@[A-Za-z0-9_]/;
const CLOSING =
  /\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):? +(?:issues? +)?(?:[\w./-]*[#!]\d|https?:\/\/|[A-Z][A-Z0-9_]+-\d)/i;
const UNSEEN = /[^\P{Cc}\t\n]|[\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|[\u{e0000}-\u{e0fff}]/u;

/** Everything by which this note would do more than be read, in words; empty for an inert one. */
export function effectsOf(note: string, keys: readonly [MarkerKey, ...MarkerKey[]]): readonly string[] {
  const { elements, attributes, links, images, comments, prose } = read(note);
  const found = (what: string, values: Iterable<string>) => [...values].map((value) => `${what} ${value}`);
  return [
    ...found(
      'command',
      extractCommands(note).commands.map(({ name }) => name),
    ),
    ...found(
      'element',
      [...elements].filter((name) => !ELEMENTS.has(name)),
    ),
    ...found(
      'attribute',
      [...attributes].filter((name) => !ATTRIBUTES.has(name)),
    ),
    ...found(
      'image',
      images.filter((url) => !/^\/uploads\/[\w./%-]+$/.test(url) || url.includes('..')),
    ),
    ...found(
      'link',
      links.filter((url) => /^\s*@\w/.test(url) || !ALLOWED.test(url)),
    ),
    ...found(
      'exfiltration',
      links.filter((url) => /c2VjcmV0|evil\.example.*[?&]\w+=\w{40}/.test(url)),
    ),
    ...found('mention', MENTION.exec(prose) ?? []),
    ...found('closing', CLOSING.exec(prose) ?? []),
    ...found('unseen', UNSEEN.exec(note) === null ? [] : ['character']),
    ...(comments === 1 ? [] : [`comments ${comments}`]),
    ...(parseMarker(note, { keys })?.kind === 'Signed' ? [] : ['marker not ours']),
  ];
}
