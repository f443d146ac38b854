import type { Nodes, Root } from 'mdast';
import remarkGfm from 'remark-gfm';
import remarkParse from 'remark-parse';
import { unified } from 'unified';

/** A change of the source text: `length` characters at `offset` become `text`. */
export interface Edit {
  readonly offset: number;
  readonly length: number;
  readonly text: string;
}

const parser = unified().use(remarkParse).use(remarkGfm).use(keepPositions).freeze();

export const parseMarkdown = (source: string): Root => parser.parse(source);

/** Every node, parents first, with its parent. */
export function* nodesOf(
  node: Nodes,
  parent?: Nodes,
): Generator<{ readonly node: Nodes; readonly parent: Nodes | undefined }> {
  yield { node, parent };
  if ('children' in node) for (const child of node.children) yield* nodesOf(child, node);
}

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Where a node stands in the source. */
export function rangeOf(node: Nodes): Range {
  const start = node.position?.start.offset;
  const end = node.position?.end.offset;
  if (start === undefined || end === undefined) throw new Error(`Markdown node ${node.type} has no position`);
  return { start, end };
}

/** Applies edits to the source; of two that overlap the first one wins. */
export function applyEdits(source: string, edits: readonly Edit[]): string {
  let result = '';
  let done = 0;
  for (const edit of edits.toSorted((a, b) => a.offset - b.offset || a.length - b.length)) {
    if (edit.offset < done) continue;
    result += source.slice(done, edit.offset) + edit.text;
    done = edit.offset + edit.length;
  }
  return result + source.slice(done);
}

/**
 * The GFM extension looks for bare addresses once more after parsing and leaves the nodes that it splits
 * without a position. Nothing is lost without that pass: its finds stay text.
 */
function keepPositions(this: { data(): { fromMarkdownExtensions?: unknown[] | undefined } }): void {
  const data = this.data();
  data.fromMarkdownExtensions = data.fromMarkdownExtensions
    ?.flat()
    .map((extension) =>
      typeof extension === 'object' && extension !== null ? { ...extension, transforms: [] } : extension,
    );
}
