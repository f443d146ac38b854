import type { ToolOutput } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';

export interface JsonLines {
  /** In the plural, as messages call the rows: `statuses`. */
  readonly what: string;
  /** What is shown of the rows of one page, an object a line. Default: the rows as they are. */
  shown?(rows: readonly unknown[]): Promise<readonly unknown[]>;
  /** What else is missing, asked at the end. */
  missing?(): string | undefined;
  /** Said when nothing is shown and nothing is missing. */
  readonly none: string;
}

/**
 * A list page by page. The first page is awaited, so that a refusal is an error and not an empty file; the rest flows.
 * A list that breaks off later keeps what has come.
 */
export async function jsonLines(
  pages: AsyncIterable<readonly unknown[]>,
  { what, shown = async (rows) => rows, missing, none }: JsonLines,
): Promise<ToolOutput> {
  const iterator = pages[Symbol.asyncIterator]();
  const first = await iterator.next();
  let read = 0;
  let lines = 0;
  let brokenOff: string | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (let page = first; !page.done; page = await iterator.next()) {
        read += page.value.length;
        const rows = await shown(page.value);
        lines += rows.length;
        yield Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      }
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      brokenOff = `The list broke off after ${read} ${what} (${error.message}); those after them are missing.`;
    } finally {
      await iterator.return?.();
    }
  }
  const incomplete = (): string | undefined => {
    const sentences = [brokenOff, missing?.()].filter((sentence) => sentence !== undefined);
    return sentences.length === 0 ? undefined : sentences.join(' ');
  };
  return {
    kind: 'Stream',
    chunks: chunks(),
    suffix: '.jsonl',
    binary: false,
    incomplete,
    note: () => (lines === 0 && incomplete() === undefined ? none : undefined),
  };
}
