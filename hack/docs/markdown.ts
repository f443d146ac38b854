import { read } from './sources.ts';

/** The text below a heading of the second level, up to the next one. Throws when there is none. */
export function section(path: string, heading: string): string {
  const parts = read(path).split(/^## /m);
  const found = parts.find((part) => part.startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`${path} has no section "${heading}"`);
  return found;
}

/** Cells of every row of every table in a text, without header rows and rulers. */
export function tableRows(text: string): readonly (readonly string[])[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const isRow = line.startsWith('| ') && !isRuler(line) && !isRuler(lines[index + 1] ?? '');
    return isRow
      ? [
          line
            .slice(1, line.lastIndexOf('|'))
            .split(' | ')
            .map((cell) => cell.trim()),
        ]
      : [];
  });
}

const isRuler = (line: string): boolean => /^\|[-:| ]+\|$/.test(line);

/** Words in backticks, outside of fenced blocks. */
export const codeWords = (text: string): readonly string[] =>
  [...withoutFences(text).matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);

/** Targets of inline links, outside of code. */
export function links(text: string): readonly string[] {
  const prose = withoutCode(text);
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}

/** Anchors of the headings, as GitLab and GitHub make them. */
export function anchors(text: string): ReadonlySet<string> {
  const headings = [...withoutFences(text).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return new Set(
    headings.map((title) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-'),
    ),
  );
}

const withoutFences = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '');
const withoutCode = (text: string): string => withoutFences(text).replace(/`[^`\n]*`/g, '');
