import { matchesWildcards } from '../../../crds/wildcards.ts';

/**
 * A pattern of paths: literal, or with `**` as its first or last segment (any number of segments, at the end at
 * least one), and `*` and `?` within a segment. Throws where `**` stands in the middle, which would never match.
 */
export function pathGlob(pattern: string): (path: string) => boolean {
  const segments = pattern.split('/');
  const anywhere = segments[0] === '**';
  const below = segments.length > 1 && segments.at(-1) === '**';
  const wanted = segments.slice(anywhere ? 1 : 0, below ? -1 : undefined);
  if (wanted.some((segment) => segment.includes('**') || segment === ''))
    throw new Error(
      `path pattern ${JSON.stringify(pattern)}: write a path, dir/**, **/name or **/dir/**; ** in the middle matches nothing`,
    );
  return (path) => {
    const given = path.split('/');
    // What is left of the path behind the match: nothing, or what is below.
    const starts = anywhere ? given.length - wanted.length : 0;
    for (let start = 0; start <= starts; start += 1) {
      const rest = given.length - start - wanted.length;
      if (below ? rest < 1 : rest !== 0) continue;
      if (wanted.every((segment, index) => matchesWildcards(segment, given[start + index] ?? '')))
        return true;
    }
    return false;
  };
}
