import { compareVersions, parseVersion, type Version } from '../charts/version-range.ts';
import type { Move, Upstream } from './repository.ts';

export interface Release {
  readonly tag: string;
  readonly name: string;
  readonly body: string;
}

/** Which of a repository's tags are versions of what moved, and between which two. */
export interface Span {
  readonly from: Version;
  readonly to: Version;
  versionOf(tag: string): Version | undefined;
}

/**
 * How this repository tags what moved: by the chart's name and version where many charts live, else by the version of
 * the application or of the chart. The one that has a tag for the new version counts. Undefined: none has.
 */
export function spanOf({ chart, moves }: Upstream, tags: readonly string[]): Span | undefined {
  const prefixed = (tag: string) =>
    tag.startsWith(`${chart}-`) ? parseVersion(tag.slice(chart.length + 1)) : undefined;
  const plain = (tag: string) => parseVersion(tag);
  const ways: readonly (readonly [Move | undefined, (tag: string) => Version | undefined])[] = [
    [moves.chart, prefixed],
    [moves.app, plain],
    [moves.chart, plain],
  ];
  for (const [move, versionOf] of ways) {
    const from = move && parseVersion(move.from);
    const to = move && parseVersion(move.to);
    if (from === undefined || to === undefined) continue;
    if (tags.some((tag) => same(versionOf(tag), to))) return { from, to, versionOf };
  }
  return undefined;
}

const same = (one: Version | undefined, other: Version): boolean =>
  one !== undefined && compareVersions(one, other) === 0;

/** Tags after the old version up to the new one, the newest first; pre-releases only where one was moved to. */
export function tagsBetween({ from, to, versionOf }: Span, tags: readonly string[]): readonly string[] {
  return versions(tags, versionOf)
    .filter(({ version }) => compareVersions(version, from) > 0 && compareVersions(version, to) <= 0)
    .filter(({ version }) => version.pre.length === 0 || same(version, to))
    .map(({ tag }) => tag);
}

/** Ends of a comparison: the highest version that is not after the old one, and the new one. */
export function endsOf(
  { from, to, versionOf }: Span,
  tags: readonly string[],
): { readonly base: string; readonly head: string } | undefined {
  const all = versions(tags, versionOf);
  const base = all.find(({ version }) => compareVersions(version, from) <= 0)?.tag;
  const head = all.find(({ version }) => same(version, to))?.tag;
  return base === undefined || head === undefined ? undefined : { base, head };
}

/** The highest first, whatever order they come in. */
function versions(
  tags: readonly string[],
  versionOf: Span['versionOf'],
): readonly { readonly tag: string; readonly version: Version }[] {
  return [...new Set(tags)]
    .flatMap((tag) => {
      const version = versionOf(tag);
      return version === undefined ? [] : [{ tag, version }];
    })
    .toSorted((one, other) => compareVersions(other.version, one.version));
}

/** Undefined: no release of the span has a word. */
export function notesText(
  upstream: Pick<Upstream, 'name'>,
  span: Span,
  releases: readonly Release[],
  limits: { readonly maxReleases: number; readonly maxBodyChars: number },
): string | undefined {
  const byTag = new Map(releases.map((release) => [release.tag, release]));
  const told = tagsBetween(span, [...byTag.keys()]).flatMap((tag) => byTag.get(tag) ?? []);
  const withWords = told.filter(({ body }) => body.trim() !== '');
  const shown = withWords.slice(0, limits.maxReleases);
  if (shown.length === 0) return undefined;
  const more = withWords.length - shown.length;
  return [
    ...shown.map(
      ({ tag, name, body }) =>
        `## ${oneLine(upstream.name)} ${oneLine(tag)}${name === '' || name === tag ? '' : `: ${oneLine(name)}`}\n\n${cut(body.trim(), limits.maxBodyChars)}`,
    ),
    ...(more > 0 ? [`(${more} older releases in between are not shown.)`] : []),
  ].join('\n\n');
}

function cut(text: string, maxCharacters: number): string {
  const characters = [...text.replaceAll(/\r\n?/g, '\n').replaceAll(/[^\P{C}\n\t]/gu, '')];
  return characters.length <= maxCharacters
    ? characters.join('')
    : `${characters.slice(0, maxCharacters).join('')}\n(cut after ${maxCharacters} of ${characters.length} characters)`;
}

/** Of text that anybody upstream may have written. */
export const oneLine = (text: string): string =>
  text
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, 200);
