import type { RepositoryTree } from '../port.ts';
import type { Refusal } from './refusal.ts';
import { resolveFile } from './safe-path.ts';
import { decodeYaml } from './yaml/text.ts';

export type ReadableText =
  | { readonly kind: 'Text'; readonly text: string }
  | ({ readonly kind: 'Refused' } & Refusal);

/** Text of a file that scalars are listed of and edited in; the one way by which either reads a file. */
export function readableText(tree: RepositoryTree, path: string): ReadableText {
  const file = resolveFile(tree, path);
  if (file.kind === 'Refused') return file;
  if (!/\.(ya?ml|json)$/i.test(path)) return unreadable('is neither a YAML nor a JSON file');
  if (isTemplate(tree, path)) return unreadable("is a chart's template");
  const decoded = decodeYaml(file.bytes);
  return decoded.kind === 'Text' ? decoded : unreadable(decoded.reason);
}

/** What YAML reads in a template is not what helm makes of it. */
function isTemplate(tree: RepositoryTree, path: string): boolean {
  const segments = path.split('/');
  return segments.some(
    (segment, index) =>
      segment === 'templates' &&
      index < segments.length - 1 &&
      tree.entry([...segments.slice(0, index), 'Chart.yaml'].join('/')) !== undefined,
  );
}

const unreadable = (message: string): ReadableText => ({ kind: 'Refused', reason: 'Unreadable', message });
