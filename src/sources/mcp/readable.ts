import { visibleText } from '../../http/visible-text.ts';

/**
 * A text of somebody else's as the model may see it: what a person who looks at the definition would read, and no
 * more. At most `max` characters.
 */
export function readable(text: string, max: number): string {
  const shown = visibleText(text.slice(0, max * 8).replace(/\t/g, ' '))
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  const characters = [...shown];
  return characters.length <= max ? shown : `${characters.slice(0, max - 1).join('')}…`;
}
