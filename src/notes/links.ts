/**
 * Whether following the link, or a browser that resolves its host ahead of time, tells its owner more than that it
 * was followed: a text that an attacker steers could carry what it has seen out in an address. Links to hosts of
 * our own carry what they like. `trustedHosts` in lower case.
 */
export function carriesData(url: string, trustedHosts: readonly string[]): boolean {
  if (/^mailto:/i.test(url)) return url.includes('?');
  if (!/^(?:https?:)?\/\//i.test(url)) return false;
  const parsed = URL.parse(url, 'https://relative.invalid');
  if (parsed === null) return true;
  const host = parsed.hostname.toLowerCase();
  if (parsed.username !== '' || parsed.password !== '') return true;
  if (trustedHosts.includes(host)) return false;
  if (host.length > LONG_HOST || host.split('.').some((label) => label.length > LONG_LABEL)) return true;
  const rest = `${parsed.pathname}${parsed.search}${parsed.hash}`;
  return rest.length > LONG_REST || rest.split(/[/?&#=;,+]|%2[fF]/).some(isPayload);
}

/** What documentation and issue trackers use stays well below these. */
const LONG_REST = 240;
const LONG_HOST = 80;
const LONG_LABEL = 32;
const LONG_WORD = 40;

/** A long word that is neither a digest nor words joined by dashes, as titles in addresses are. */
function isPayload(part: string): boolean {
  if (part.length <= LONG_WORD || /^(?:[0-9a-f]{40}|[0-9a-f]{64})(?:\.\w{1,8})?$/i.test(part)) return false;
  return part.split(/[-_.~]/).some((word) => word.length > LONG_TITLE_WORD);
}

const LONG_TITLE_WORD = 20;

/** Characters at which parsers disagree whether a bare address goes on: what follows could be Markdown to one of them. */
export const isOddAddress = (address: string): boolean => /[[\]`\\!"|*^{}<>]/.test(address);

/** An address in prose, as GitLab finds it: up to a blank or a bracket. */
export const ADDRESS = /\bhttps?:\/\/[^\s<>]+/gi;
