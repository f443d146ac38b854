import { mentioned } from '../delivery/evidence/subjects.ts';
import { oneLine } from './releases.ts';

/** Commits between two tags, as far as the host shows them. */
export interface Comparison {
  readonly base: string;
  readonly head: string;
  readonly commits: readonly { readonly sha: string; readonly message: string }[];
  /** In all; undefined: the host does not say, but there are more than are here. */
  readonly total: number | undefined;
  /** Paths that changed, where the host shows them. */
  readonly paths: readonly string[];
}

const MAX_PATHS = 10;

/** What of it mentions the subjects; that nothing does is an answer too. */
export function commitsText(
  name: string,
  comparison: Comparison,
  subjects: readonly string[],
  maxCommits: number,
): string {
  const { base, head, commits, total, paths } = comparison;
  const relevant = commits.filter(({ message }) => mentioned(subjects, message).length > 0);
  const shown = relevant.slice(0, maxCommits);
  const truncated = total === undefined || total > commits.length;
  const looked = `${count(commits.length, 'commit')}${truncated ? ` looked at, of ${total ?? 'more'} (truncated by the host)` : ''}`;
  const found =
    relevant.length === 0
      ? 'none mentions what the report names'
      : `${relevant.length} mention${relevant.length === 1 ? 's' : ''} what the report names${
          shown.length < relevant.length ? `, the first ${shown.length} are shown` : ''
        }`;
  const files = paths.filter((path) => mentioned(subjects, path).length > 0);
  const capped = files.length > MAX_PATHS ? `, the first ${MAX_PATHS} are shown` : '';
  return [
    `${oneLine(name)} ${oneLine(base)}...${oneLine(head)}: ${looked}, ${found}.`,
    ...shown.map(({ sha, message }) => `- ${sha.slice(0, 12)} ${oneLine(message.split('\n')[0] ?? '')}`),
    ...(files.length === 0 ? [] : [`Changed files that are named so (${files.length}${capped}):`]),
    ...files.slice(0, MAX_PATHS).map((path) => `- ${oneLine(path)}`),
  ].join('\n');
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;
