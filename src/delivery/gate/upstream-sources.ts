import type { ChartMetadata } from '../chart/metadata.ts';
import type { RepositoryTree } from '../port.ts';
import type { UpstreamSource } from './report.ts';

/** A chart of many parts names some; the rest is advertising. */
const MAX_SOURCES = 10;
const MAX_CHARACTERS = 500;

/** What the chart declares in https, each once, and whether any file of the repository names its host. */
export function upstreamSources(
  { sources = [], home }: Pick<ChartMetadata, 'sources' | 'home'>,
  tree: RepositoryTree,
): readonly UpstreamSource[] {
  const urls = [...sources, ...(home === undefined ? [] : [home])]
    .map((url) => url.trim())
    .filter((url) => url.length <= MAX_CHARACTERS && /^https:\/\/[!-~]+$/.test(url) && URL.canParse(url));
  const hosts = new Map<string, boolean>();
  return [...new Set(urls)].slice(0, MAX_SOURCES).map((url) => {
    const { host } = new URL(url);
    const named = hosts.get(host) ?? names(tree, host);
    hosts.set(host, named);
    return { url, named };
  });
}

function names(tree: RepositoryTree, host: string): boolean {
  return tree.paths.some((path) => {
    const entry = tree.entry(path);
    return (
      entry?.kind === 'File' &&
      hasName(Buffer.from(entry.bytes.buffer, entry.bytes.byteOffset, entry.bytes.length), host)
    );
  });
}

/** As a whole: `hub.example.org` is not named by `github.example.org`, nor by `hub.example.org.evil.org`. */
function hasName(text: Buffer, host: string): boolean {
  for (let at = text.indexOf(host); at >= 0; at = text.indexOf(host, at + 1)) {
    const before = text[at - 1];
    const after = text.toString('latin1', at + host.length, at + host.length + 2);
    if ((before === undefined || !/[\w.-]/.test(String.fromCharCode(before))) && !/^([\w-]|\.\w)/.test(after))
      return true;
  }
  return false;
}
