import { ZodError } from 'zod';
import type { Testimony } from '../delivery/evidence/testimony.ts';
import type { GateReport } from '../delivery/gate/report.ts';
import { type Destinations, type HttpClient, HttpError } from '../http/client.ts';
import { commitsText } from './commits.ts';
import { readerOf } from './hosts.ts';
import { endsOf, notesText, spanOf } from './releases.ts';
import { type Upstream, type UpstreamRules, upstreamsOf } from './repository.ts';

export interface TestimonyOptions extends UpstreamRules {
  readonly http: HttpClient;
  readonly enabled: boolean;
  readonly maxReleases: number;
  readonly maxCommits: number;
  /** Of one release note. */
  readonly maxBodyChars: number;
  /** Where requests and their redirects may lead. Default: public addresses, by https. */
  readonly within?: Destinations;
}

export type ReadTestimony = (
  report: GateReport,
  subjects: readonly string[],
  signal?: AbortSignal,
) => Promise<Testimony>;

/**
 * Release notes and commits between the two versions, from where the charts themselves say that they are developed. No
 * token goes there. Rejects only with an abort: what could not be read is the testimony's silence.
 */
export function createTestimony(options: TestimonyOptions): ReadTestimony {
  return async (report, subjects, signal) => {
    if (!options.enabled) return { silence: 'upstreamNotes is switched off' };
    const found = upstreamsOf(report, options);
    if (found.kind === 'None') return { silence: found.why };
    const told: Testimony[] = [];
    for (const upstream of found.upstreams) told.push(await testimonyOf(upstream, subjects, options, signal));
    return joined(told);
  };
}

async function testimonyOf(
  upstream: Upstream,
  subjects: readonly string[],
  options: TestimonyOptions,
  signal: AbortSignal | undefined,
): Promise<Testimony> {
  const reader = readerOf(upstream, { http: options.http, within: options.within ?? {}, signal });
  const { name } = upstream;
  let notes: string | undefined;
  try {
    const releases = await reader.releases();
    let tags = releases.map(({ tag }) => tag);
    let span = spanOf(upstream, tags);
    if (span !== undefined) notes = notesText(upstream, span, releases, options);
    if (subjects.length === 0 || options.maxCommits === 0) return notesOr(notes, name);
    let ends = span && endsOf(span, tags);
    if (ends === undefined) {
      // A release for each version is a custom, a tag is not.
      tags = [...tags, ...(await reader.tags())];
      span = spanOf(upstream, tags);
      ends = span && endsOf(span, tags);
    }
    if (ends === undefined)
      return notes === undefined
        ? { silence: `${name} has no tags for the two versions` }
        : { notes, commits: `${name}: no commits were compared, since it has no tags for both versions.` };
    const comparison = await reader.compare(ends.base, ends.head);
    return {
      ...(notes !== undefined && { notes }),
      commits: commitsText(name, comparison, subjects, options.maxCommits),
    };
  } catch (error) {
    if (!(error instanceof HttpError || error instanceof ZodError)) throw error;
    const why = `${name} could not be read to the end: ${reasonOf(error)}`;
    return notes === undefined ? { silence: why } : { notes, commits: `No commits were compared: ${why}.` };
  }
}

/** Nothing of the answer itself: such hosts tell a caller its own address. */
function reasonOf(error: HttpError | ZodError): string {
  if (error instanceof ZodError) return 'an answer is not what such a host gives';
  const { status, code } = error;
  if (status === undefined)
    return code === 'RefusedAddress' ? 'its address is not public' : `no answer (${code})`;
  const limited = status === 403 || status === 429;
  return `it answers ${status}${limited ? ', as it does to too many requests without a login' : ''}`;
}

const notesOr = (notes: string | undefined, name: string): Testimony =>
  notes === undefined ? { silence: `${name} has no release notes between the two versions` } : { notes };

function joined(told: readonly Testimony[]): Testimony {
  const all = (part: keyof Testimony, by: string): string | undefined =>
    told
      .map((one) => one[part])
      .filter((text) => text !== undefined)
      .join(by) || undefined;
  const [notes, commits] = [all('notes', '\n\n'), all('commits', '\n\n')];
  if (notes === undefined && commits === undefined)
    return { silence: all('silence', '; ') ?? 'there is nothing between the two versions' };
  return { ...(notes !== undefined && { notes }), ...(commits !== undefined && { commits }) };
}
