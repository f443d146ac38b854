import { readFile } from 'node:fs/promises';
import { DELIVERY_PROMPTS, type DeliveryPrompt, type DeliveryPromptTexts } from './system.ts';

/** At the top of the tree, three levels up from src/delivery/prompts and from dist/delivery/prompts alike. */
const PROMPTS = new URL('../../../prompts/delivery/', import.meta.url);

/** The four system prompts. Throws when one cannot be read. */
export async function loadDeliveryPrompts(directory: URL = PROMPTS): Promise<DeliveryPromptTexts> {
  const read = async (name: DeliveryPrompt): Promise<string> => {
    const file = new URL(`${name}.md`, directory);
    try {
      return await readFile(file, 'utf8');
    } catch (cause) {
      throw new Error(`The prompt ${name} cannot be read from ${file.pathname}: reinstall the operator.`, {
        cause,
      });
    }
  };
  const [triage, explain, restructure, values] = await Promise.all(DELIVERY_PROMPTS.map(read));
  if (triage === undefined || explain === undefined || restructure === undefined || values === undefined)
    throw new Error('A prompt of prompts/delivery is missing: reinstall the operator.');
  return { triage, explain, restructure, 'values-migration': values };
}
