import type { Reach } from './addresses.ts';

/**
 * Where a URL that comes from data may lead (a model's argument, a line of a file, an answer of another service): the
 * URL itself and each redirect. URLs that people configure need none.
 */
export interface Destinations {
  /**
   * Addresses such as `https://files.example.org/results/`: every hop lies below one of them. Absent: any host, by
   * https only.
   */
  readonly below?: readonly string[];
  /** Default `Public`. Private ranges are for services that are known to live there. */
  readonly reach?: Reach;
}

/**
 * Why a URL does not lie within the destinations; undefined when it does. The text is judged before it is parsed: what
 * parsers drop or turn round (tabs, line breaks, backslashes) is how two of them come to see different hosts.
 */
export function outside(text: string, { below }: Destinations): string | undefined {
  if (!UNAMBIGUOUS.test(text)) return 'the URL holds spaces, control characters or backslashes';
  if (!URL.canParse(text)) return 'this is no absolute URL';
  const url = new URL(text);
  // Also an empty one, which is gone after parsing.
  if (url.username !== '' || url.password !== '' || /^[a-z]+:\/*[^/?#]*@/i.test(text))
    return 'the URL names a user before its host';
  if (below === undefined) return url.protocol === 'https:' ? undefined : `${url.protocol}// is not allowed`;
  if (climbs(url.pathname)) return 'the path climbs out of its folder';
  if (below.some((base) => liesBelow(url, new URL(base)))) return undefined;
  return `the URL does not lie below ${below.join(' or ')}`;
}

/** No controls, no spaces, no backslash. */
const UNAMBIGUOUS = /^[!-[\]-~\u{a1}-\u{10ffff}]*$/u;

function liesBelow(url: URL, base: URL): boolean {
  const folder = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`;
  return url.origin === base.origin && (url.pathname === base.pathname || url.pathname.startsWith(folder));
}

/** Dot segments that the parser has left, since their separator is encoded: servers may decode it. */
function climbs(pathname: string): boolean {
  const decoded = pathname.replace(/%(25)*(2f|5c)/gi, '/').replace(/%(25)*2e/gi, '.');
  return decoded.split('/').includes('..');
}
