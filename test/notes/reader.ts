import MarkdownIt from 'markdown-it';

/** What a reader's browser would get, found by another Markdown parser than the one that made the note inert. */
export interface Seen {
  /** Names of elements, of raw HTML and of Markdown. */
  readonly elements: ReadonlySet<string>;
  /** Names of attributes that raw HTML could bring. */
  readonly attributes: ReadonlySet<string>;
  readonly links: readonly string[];
  readonly images: readonly string[];
  readonly comments: number;
  /** Text, entities decoded, with a mark in place of code and of each tag. */
  readonly prose: string;
}

const markdown = new MarkdownIt({ html: true, linkify: true });

const TOKEN = /<!--[\s\S]*?(?:-->|$)|<(\/?)([a-z][a-z0-9-]*)((?:"[^"]*"|'[^']*'|[^'">])*)>|[^<]+|</gi;

export function read(note: string): Seen {
  const elements = new Set<string>();
  const attributes = new Set<string>();
  const links: string[] = [];
  const images: string[] = [];
  let comments = 0;
  let code = 0;
  let isAddress = false;
  let prose = '';
  for (const [token, slash, name, rest = ''] of markdown.render(note).matchAll(TOKEN)) {
    if (token.startsWith('<!--')) comments += 1;
    else if (name === undefined)
      prose += code > 0 ? '\ufffc' : isAddress && /^https?:\/\//i.test(token) ? '' : token;
    else {
      prose += '\ufffc';
      const tag = name.toLowerCase();
      if (tag === 'code' || tag === 'pre') code += slash === '/' ? -1 : 1;
      // GitLab looks for no references in an address that is its own text.
      if (tag === 'a') isAddress = slash === '';
      if (slash === '/') continue;
      elements.add(tag);
      for (const [, attribute = '', quoted = ''] of rest.matchAll(
        /([\w:-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?/g,
      )) {
        attributes.add(attribute.toLowerCase());
        const value = decoded(quoted.replace(/^["']|["']$/g, ''));
        if (tag === 'a' && attribute === 'href') links.push(value);
        if (attribute === 'src') images.push(value);
      }
    }
  }
  return { elements, attributes, links, images, comments, prose: decoded(prose) };
}

const decoded = (text: string): string =>
  text
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replace(/&amp;/g, '&');
