/** CSI sequences, strings (titles, links) up to their terminator, and two-character escapes. */
const ANSI_SEQUENCES = new RegExp(
  [
    String.raw`\u001b\[[0-?]*[ -/]*[@-~]`,
    String.raw`\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?`,
    String.raw`\u001b[ -/]*[0-~]`,
  ].join('|'),
  'g',
);
/** C0 without tab and newline, DEL, C1. */
const CONTROLS = /[^\P{Cc}\t\n]/gu;
/**
 * Bidirectional controls (text that reads otherwise than it is stored), zero-width characters except the joiners
 * of scripts and emoji, interlinear annotations, and tag characters (text that nobody sees).
 */
const INVISIBLE =
  /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** Visible text with `\n` line ends: what can be judged by looking at it. */
export function visibleText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(/[\u2028\u2029]/g, '\n')
    .replace(ANSI_SEQUENCES, '')
    .replace(CONTROLS, '')
    .replace(INVISIBLE, '');
}
