import type { Lever, Levers } from '../levers.ts';
import { LEVERS } from '../levers.ts';

/** Files of `prompts/delivery/`, by name. */
export const DELIVERY_PROMPTS = ['triage', 'explain', 'restructure', 'values-migration'] as const;
export type DeliveryPrompt = (typeof DELIVERY_PROMPTS)[number];

/** System prompts as the files have them, marks of levers included. */
export type DeliveryPromptTexts = Readonly<Record<DeliveryPrompt, string>>;

const SECTION = /<!-- lever: (\w+) -->\n(.*?)<!-- end -->\n/gs;

/**
 * A system prompt with the sections of the levers that are on. Throws for an empty prompt and for a mark that names
 * no lever: a prompt that is not what it seems must not be measured, still less shipped.
 */
export function systemPrompt(text: string, levers: Levers): string {
  const chosen = text.replace(SECTION, (_, lever: string, section: string) => {
    if (!isLever(lever))
      throw new Error(`A prompt marks a section for the lever ${lever}, which does not exist.`);
    return levers[lever] ? section : '';
  });
  if (/<!--/.test(chosen)) throw new Error('A prompt has a mark that is not closed, or another comment.');
  if (chosen.trim() === '') throw new Error('A prompt of prompts/delivery is empty.');
  return chosen.replace(/\n{3,}/g, '\n\n').trim();
}

/** Levers whose sections a prompt has. */
export const leversOf = (text: string): readonly string[] =>
  [...text.matchAll(SECTION)].map(([, lever]) => lever ?? '');

const isLever = (name: string): name is Lever => LEVERS.some((lever) => lever === name);
