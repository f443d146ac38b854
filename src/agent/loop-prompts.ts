import { readFileSync } from 'node:fs';

/** Files of prompts/loop, and the values that each of them has a place for. */
export const LOOP_PROMPTS = {
  base: [],
  sandbox: ['scratch', 'spill'],
  continuation: [],
  'empty-answer': [],
  'malformed-call': [],
  'iteration-warning': ['iteration', 'maxIterations'],
  'context-warning': ['tokens', 'maxTokens'],
  'budget-warning': ['percent'],
  'final-turn': ['limit'],
} as const;

export type LoopPrompt = keyof typeof LOOP_PROMPTS;

/** The folder stands at the top of the tree, two levels up from src/agent and from dist/agent alike. */
export const LOOP_PROMPTS_FOLDER = new URL('../../prompts/loop/', import.meta.url);

/** Read once, when this module is loaded: a missing file is seen at the start, not in the middle of a run. */
const texts: Readonly<Record<LoopPrompt, string>> = {
  base: read('base'),
  sandbox: read('sandbox'),
  continuation: read('continuation'),
  'empty-answer': read('empty-answer'),
  'malformed-call': read('malformed-call'),
  'iteration-warning': read('iteration-warning'),
  'context-warning': read('context-warning'),
  'budget-warning': read('budget-warning'),
  'final-turn': read('final-turn'),
};

/** The prompt with `{{name}}` replaced; without its final newline. Throws for a place without a value. */
export function loopPrompt<Name extends LoopPrompt>(
  name: Name,
  values: Readonly<Record<(typeof LOOP_PROMPTS)[Name][number], string | number>>,
): string {
  const given = new Map<string, string | number>(Object.entries(values));
  return texts[name].replace(/\{\{(\w+)\}\}/g, (_place, key: string) => {
    const value = given.get(key);
    if (value === undefined)
      throw new Error(`prompts/loop/${name}.md has a place for ${key}, which is not known`);
    return String(value);
  });
}

function read(name: LoopPrompt): string {
  const file = new URL(`${name}.md`, LOOP_PROMPTS_FOLDER);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new Error(`The prompt ${file.pathname} cannot be read: reinstall the operator.`, { cause });
  }
}
