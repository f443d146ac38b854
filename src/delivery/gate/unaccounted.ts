import type { RepositoryTree } from '../port.ts';
import type { Application } from './applications/application.ts';
import { type Manifest, manifestsOf } from './applications/manifests.ts';
import { foldersOf } from './charts.ts';

/** Sentences of this kind in one report. */
const MAX_NAMED = 20;

/**
 * Changed YAML files that nothing rendered has read, and that are no plain manifests either: what another tool makes
 * of them is not known, and a report that does not say so would look green. Each in one sentence.
 */
export function unaccounted(
  changed: readonly string[],
  sides: readonly { readonly tree: RepositoryTree; readonly applications: readonly Application[] }[],
): readonly string[] {
  const files = new Set<string>();
  const folders: string[] = [];
  for (const { tree, applications } of sides) {
    for (const { path, values, chart } of applications) {
      files.add(path);
      for (const layer of values) if (layer.kind === 'Text') files.add(layer.path);
      if (chart.kind === 'Folder') folders.push(...foldersOf(tree, chart.directory));
    }
  }
  const open = changed.filter(
    (path) =>
      /\.ya?ml$/.test(path) &&
      !files.has(path) &&
      !folders.some((folder) => folder === '' || path.startsWith(`${folder}/`)) &&
      !sides.some(({ tree }) => isPlain(tree, path)),
  );
  const sentences = open
    .slice(0, MAX_NAMED)
    .map((path) => `${path} changes, and no application that is known here reads it.`);
  const more = open.length - MAX_NAMED;
  return more > 0 ? [...sentences, `So do ${more} more files.`] : sentences;
}

/** Manifests that are applied as they stand: the merge request itself shows what changes. */
function isPlain(tree: RepositoryTree, path: string): boolean {
  if (tree.entry(path) === undefined) return false;
  const read = manifestsOf(tree, path);
  return read.kind === 'Read' && read.manifests.length > 0 && read.manifests.every(isObject);
}

/** A kustomization may fetch charts by itself. */
const isObject = ({ value }: Manifest): boolean =>
  typeof value['apiVersion'] === 'string' && typeof value['kind'] === 'string' && !('helmCharts' in value);
