import { isBlank, isThinking } from './blocks.ts';
import type { AnthropicMessage } from './wire.ts';

/**
 * The two breakpoints that slide along a conversation. A prefix's hash covers tools, system prompt and all
 * earlier messages, so a breakpoint on a message is enough: the last entry's writes the cache, and the one where
 * the call before wrote reads it. Two of the four that a request may have.
 */
export class SlidingBreakpoints {
  /** Entry that the newest answered call wrote the cache at. */
  #written: number | undefined;

  /**
   * Where to put breakpoints; a place behind the end of a shorter conversation counts for nothing. An ephemeral
   * turn reads but does not write: its text never comes again.
   */
  positions(entries: number, ephemeral: boolean): readonly number[] {
    const read = this.#written === undefined ? [] : [this.#written];
    return ephemeral ? read : [...new Set([...read, entries - 1])];
  }

  /** To be called when a call was answered: one that failed may not have written anything. */
  answered(entries: number, ephemeral: boolean): void {
    if (!ephemeral) this.#written = entries - 1;
  }
}

/** Copies of the entries at the positions with a breakpoint on their last block that may carry one. */
export function withBreakpoints(
  history: readonly AnthropicMessage[],
  positions: readonly number[],
): readonly AnthropicMessage[] {
  return history.map((entry, index) => (positions.includes(index) ? withBreakpoint(entry) : entry));
}

function withBreakpoint(entry: AnthropicMessage): AnthropicMessage {
  const at = entry.content.findLastIndex((block) => !isBlank(block) && !isThinking(block));
  const block = entry.content[at];
  if (!block) return entry;
  return { ...entry, content: entry.content.with(at, { ...block, cache_control: { type: 'ephemeral' } }) };
}
