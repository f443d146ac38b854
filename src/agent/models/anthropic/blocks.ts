import type { Block, ToolUse } from './wire.ts';

export function isToolUse(block: Block): block is ToolUse {
  return block.type === 'tool_use' && block.id !== undefined && block.name !== undefined;
}

/** The API refuses text blocks that are empty or only white space, wherever they stand. */
export function isBlank({ type, text = '' }: Block): boolean {
  return type === 'text' && text.trim() === '';
}

export function isThinking({ type }: Block): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

export function textOf(blocks: readonly Block[]): string {
  return blocks.map(({ type, text = '' }) => (type === 'text' ? text : '')).join('');
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value));
}
