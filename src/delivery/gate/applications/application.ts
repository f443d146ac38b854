import { resolveFile } from '../../edits/safe-path.ts';
import type { ChartReference, RepositoryTree } from '../../port.ts';

/** One chart that the repository deploys, as Argo CD, Flux or a chart's own dependencies say it. */
export interface Application {
  /** Unique at one commit: `Application argocd/metallb`, `HelmRelease flux-system/metallb`, `Chart charts/web`. */
  readonly name: string;
  /** File that declares it. */
  readonly path: string;
  readonly chart: WantedChart;
  /** The last one wins. */
  readonly values: readonly ValuesLayer[];
  readonly release: string;
  readonly namespace: string;
  readonly project?: string;
  readonly cluster?: string;
  readonly apiVersions?: readonly string[];
  readonly kubeVersion?: string;
  readonly includeCrds: boolean;
  /** What of it cannot be known from the repository, each in one sentence. */
  readonly gaps: readonly string[];
}

export type WantedChart =
  | { readonly kind: 'Packed'; readonly reference: ChartReference }
  /** A chart of this very repository. */
  | { readonly kind: 'Folder'; readonly directory: string };

export type ValuesLayer =
  | {
      readonly kind: 'Text';
      readonly text: string;
      readonly path: string;
      /** Dotted, where it is a block inside the file. */
      readonly key?: string;
    }
  /** A file that the packed chart itself brings. */
  | { readonly kind: 'InChart'; readonly file: string };

/** What the finders know of the repository. */
export interface Repository {
  readonly tree: RepositoryTree;
  /** `group/app`; undefined: every Git URL is taken for this repository's own. */
  readonly project: string | undefined;
}

/** Whether a Git URL is this repository's own, whatever host and form it is written with. */
export function isOwn({ project }: Repository, url: string): boolean {
  if (project === undefined) return true;
  const path = url
    .replace(/^[a-z+]+:\/\/[^/]+\//i, '')
    .replace(/^[^/:@]+@[^/:]+:/, '')
    .replace(/(\.git)?\/*$/, '');
  return path.toLowerCase() === project.toLowerCase();
}

export type FileText =
  | { readonly kind: 'Text'; readonly text: string }
  /** Completes the sentence that begins with the path. */
  | { readonly kind: 'None'; readonly why: string };

/** A file's text; links are never followed. */
export function fileText(tree: RepositoryTree, path: string): FileText {
  const file = resolveFile(tree, path);
  return file.kind === 'File'
    ? { kind: 'Text', text: new TextDecoder().decode(file.bytes) }
    : { kind: 'None', why: file.message };
}

/** A path of the repository from a folder and what is written there; undefined when it leaves the repository. */
export function within(folder: string, written: string): string | undefined {
  const segments = written.startsWith('/') ? [] : folder.split('/').filter((segment) => segment !== '');
  for (const segment of written.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return undefined;
  }
  return segments.join('/');
}
