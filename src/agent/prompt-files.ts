import { readFile } from 'node:fs/promises';

/** Workflow prompts that come with the image, by the name that `prompt.builtin` gives. */
export const BUILTIN_PROMPTS = ['analyze-failures', 'code-review', 'renovate-babysit'] as const;

export type BuiltinPrompt = (typeof BUILTIN_PROMPTS)[number];

export function isBuiltinPrompt(name: string): name is BuiltinPrompt {
  return BUILTIN_PROMPTS.some((known) => known === name);
}

/** The folder stands at the top of the tree, two levels up from src/agent and from dist/agent alike. */
const PROMPTS = new URL('../../prompts/workflows/', import.meta.url);

/** The prompt's text, verbatim. Throws for a name that does not exist, listing those that do. */
export async function loadBuiltinPrompt(name: string, directory: URL = PROMPTS): Promise<string> {
  if (!isBuiltinPrompt(name)) {
    throw new Error(`There is no built-in prompt ${name}. Use one of: ${BUILTIN_PROMPTS.join(', ')}.`);
  }
  const file = new URL(`${name}.md`, directory);
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new Error(
      `The built-in prompt ${name} cannot be read from ${file.pathname}: reinstall the operator.`,
      { cause },
    );
  }
}

/** As `loadBuiltinPrompt`, each read once: the files come with the image. What could not be read is tried again. */
export function builtinPrompts(
  load: (name: string) => Promise<string> = loadBuiltinPrompt,
): (name: string) => Promise<string> {
  const known = new Map<string, string>();
  return async (name) => {
    const text = known.get(name) ?? (await load(name));
    known.set(name, text);
    return text;
  };
}
