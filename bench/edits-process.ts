// A process of its own, so that what its memory shows is the inventory's. Argument: inventory or edit. Prints one JSON object.
import { readFile } from 'node:fs/promises';
import { applyEdits } from '../src/delivery/edits/apply.ts';
import { inventoryOf } from '../src/delivery/edits/inventory.ts';
import { aTree } from '../test/builders/tree.ts';

export interface EditsReport {
  /** Scalars that were listed, or edits that were made. */
  readonly done: number;
  readonly milliseconds: number;
  /** Highest RSS of the process over what it had with the file loaded and the code compiled. */
  readonly growthBytes: number;
}

const KEY = 'service7.image.tag';

const [what = '', file = ''] = process.argv.slice(2);
const large = await readFile(file);
// Once with a small file, for the compiler.
measured(aTree({ 'values.yaml': large.subarray(0, large.indexOf('\nservice500:') + 1) }));
const tree = aTree({ 'values.yaml': large });
globalThis.gc?.();
const before = process.memoryUsage.rss();
const begun = performance.now();
const done = measured(tree);
const milliseconds = performance.now() - begun;
// In KiB; nothing samples memory while nothing else can run.
const growthBytes = process.resourceUsage().maxRSS * 1024 - before;
const report: EditsReport = { done, milliseconds, growthBytes };
console.log(JSON.stringify(report));

function measured(tree: ReturnType<typeof aTree>): number {
  if (what === 'inventory') {
    const listed = inventoryOf(tree, 'values.yaml');
    return listed.kind === 'Inventory' ? listed.scalars.length : 0;
  }
  const policy = { allow: ['**'], deny: [], scope: ['values.yaml'], evidence: '2.0.0' };
  const edit = { path: 'values.yaml', key: KEY, from: '1.2.7', to: '2.0.0', rationale: '' };
  return applyEdits(tree, policy, [edit]).applied.length;
}
