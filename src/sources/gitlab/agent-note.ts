/** Word that opens the comment at the end of an agent's note. */
const DEFAULT_MARKER_PREFIX = 'hummingbird-session';
/** Opens the comment at the end of the operator's own short answers. */
const ANSWER_MARK = '<!-- hummingbird-answer:';
/** What the run did, folded. Nothing follows it but the lines below. */
const TRANSCRIPT = /^<details>\s*<summary>Agent transcript<\/summary>/m;
/** What a note says to people at its end: how to go on, and which model wrote it. */
const CLOSING_LINES = [/^_Reply to this note to ask more\b.*_$/, /^_Model: .*_$/, /^---$/];

/**
 * What an agent found: its note without transcript, closing lines and marker. Any other note as it is. That a note has a
 * marker proves nothing of who wrote it, so this decides on the length of trusted notes only.
 */
export function withoutAgentParts(body: string, markerPrefix = DEFAULT_MARKER_PREFIX): string {
  const marker = markerAtEnd(body, markerPrefix);
  if (marker === undefined) return body;
  const text = body.slice(0, marker);
  const transcript = TRANSCRIPT.exec(text);
  return withoutClosingLines(transcript === null ? text : text.slice(0, transcript.index));
}

/** Where the comment starts that stands last and is a marker. */
function markerAtEnd(body: string, prefix: string): number | undefined {
  const text = body.trimEnd();
  const start = text.lastIndexOf('<!--');
  if (start === -1 || text.indexOf('-->', start) !== text.length - 3) return undefined;
  const comment = text.slice(start);
  const opened = [`<!-- ${prefix}:`, `<!-- ${prefix} `, ANSWER_MARK].some((mark) => comment.startsWith(mark));
  return opened ? start : undefined;
}

function withoutClosingLines(text: string): string {
  const lines = text.trimEnd().split('\n');
  while (lines.length > 0 && CLOSING_LINES.some((line) => line.test(lines.at(-1)?.trim() ?? ''))) {
    lines.pop();
    while (lines.at(-1)?.trim() === '') lines.pop();
  }
  return lines.join('\n');
}
