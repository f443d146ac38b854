import { type MarkerOptions, renderMarker } from './marker.ts';
import type { Marker } from './port.ts';
import { type SanitiseOptions, sanitise } from './sanitise.ts';

/** GitLab refuses longer notes (Note, `maximum is 1000000 characters`). */
export const GITLAB_NOTE_LIMIT = 1_000_000;

export interface NoteBody {
  /** Markdown, not trusted. */
  readonly text: string;
  readonly marker: Marker;
  /** Our own words under the text (how to reply, who wrote it), sanitised as well. */
  readonly footer?: string;
}

/** The whole body of a note: what may be read, then the footer, then the marker, which stands last. */
export function renderNote(
  note: NoteBody,
  options: MarkerOptions & SanitiseOptions & { readonly maxLength?: number },
): string {
  const marker = renderMarker(note.marker, options);
  const footer = note.footer === undefined ? '' : `\n\n---\n\n${sanitise(note.footer, options)}`;
  const room = (options.maxLength ?? GITLAB_NOTE_LIMIT) - footer.length - marker.length - 2;
  return `${fitted(note.text, room, options)}${footer}\n\n${marker}`;
}

const CUT = '\n\n*The text was longer than a note can be; the rest was cut.*';

/** Sanitising may lengthen a text, so it is cut, sanitised and measured until it fits. */
function fitted(source: string, room: number, options: SanitiseOptions): string {
  let text = sanitise(source, options);
  if (text.trim() === '') return '*No text.*';
  for (let length = room - CUT.length; text.length > room; length = Math.floor(length * 0.8)) {
    text = sanitise(source.slice(0, length), options) + CUT;
  }
  return text;
}
