/** CSI sequences, strings (titles, links) up to their terminator, and two-character escapes. */
const ANSI_SEQUENCES = new RegExp(
  [
    String.raw`\u001b\[[0-?]*[ -/]*[@-~]`,
    String.raw`\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?`,
    String.raw`\u001b[ -/]*[0-~]`,
  ].join('|'),
  'g',
);
/** C0 without newline, DEL, C1; and what no reader sees: bidirectional controls, zero-width and tag characters. */
const UNSEEN =
  /[^\P{Cc}\n]|[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/**
 * A text of somebody else's as the model may see it: what a person who looks at the definition would read, and no
 * more. At most `max` characters.
 */
export function readable(text: string, max: number): string {
  const shown = text
    .slice(0, max * 8)
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(/\t/g, ' ')
    .replace(ANSI_SEQUENCES, '')
    .replace(UNSEEN, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  const characters = [...shown];
  return characters.length <= max ? shown : `${characters.slice(0, max - 1).join('')}…`;
}
