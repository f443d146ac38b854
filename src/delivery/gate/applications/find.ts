import { parseChartYaml } from '../../chart/metadata.ts';
import type { RepositoryTree } from '../../port.ts';
import { createTurns } from '../turns.ts';
import { type Application, fileText, type Repository, within } from './application.ts';
import { argoApplications } from './argo.ts';
import { type ConfigMapData, type FluxObjects, fluxApplications } from './flux.ts';
import { isRecord, listAt, type Manifest, manifestsOf } from './manifests.ts';

export interface Found {
  readonly applications: readonly Application[];
  /** Files that may declare some and could not be read, each in one sentence. */
  readonly unread: readonly string[];
}

/**
 * Every chart that the repository deploys: Argo CD Applications and ApplicationSets, Flux HelmReleases, and folders
 * with a Chart.yaml that none of them names.
 */
export async function findApplications(repository: Repository): Promise<Found> {
  const { tree } = repository;
  const manifests: Manifest[] = [];
  const unread: string[] = [];
  const turn = createTurns();
  const charts = chartFolders(tree);
  for (const path of tree.paths) {
    if (!/\.ya?ml$/.test(path) || isTemplate(path, charts)) continue;
    const entry = tree.entry(path);
    if (entry?.kind !== 'File' || !isDeclaring(entry.bytes)) continue;
    await turn(entry.bytes.length);
    const read = manifestsOf(tree, path);
    if (read.kind === 'Read') manifests.push(...read.manifests);
    else unread.push(read.sentence);
  }
  const declared = applicationsIn(manifests, repository);
  const named = new Set(declared.map(({ chart }) => (chart.kind === 'Folder' ? chart.directory : undefined)));
  const folders = charts
    .filter((directory) => !named.has(directory))
    .flatMap((directory) => ofFolder(tree, directory));
  return { applications: [...declared, ...folders], unread };
}

/** The same of manifests that a chart renders. */
export function applicationsIn(
  manifests: readonly Manifest[],
  repository: Repository,
): readonly Application[] {
  const objects = fluxObjects(manifests, repository.tree);
  return distinct(
    manifests.flatMap((manifest) => [
      ...argoApplications(manifest, repository),
      ...fluxApplications(manifest, repository, objects),
    ]),
  );
}

/** Words of which one is in every file that matters; parsing all others would cost most of the time. */
const WORDS = ['argoproj.io', 'toolkit.fluxcd.io', 'ConfigMap', 'configMapGenerator'].map((word) =>
  Buffer.from(word),
);

function isDeclaring(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return WORDS.some((word) => buffer.includes(word));
}

/** Folders with a chart of the repository's own, those unpacked inside another one left out. */
function chartFolders(tree: RepositoryTree): readonly string[] {
  const all = tree.paths
    .filter((path) => path === 'Chart.yaml' || path.endsWith('/Chart.yaml'))
    .map((path) => path.slice(0, -'Chart.yaml'.length).replace(/\/$/, ''));
  return all.filter(
    (folder) =>
      !all.some(
        (other) => other !== folder && folder.startsWith(other === '' ? 'charts/' : `${other}/charts/`),
      ),
  );
}

/** What helm fills in is no YAML before. */
const isTemplate = (path: string, charts: readonly string[]): boolean =>
  charts.some((folder) => path.startsWith(folder === '' ? 'templates/' : `${folder}/templates/`));

function ofFolder(tree: RepositoryTree, directory: string): readonly Application[] {
  const path = directory === '' ? 'Chart.yaml' : `${directory}/Chart.yaml`;
  const file = fileText(tree, path);
  const metadata = file.kind === 'Text' ? parseChartYaml(file.text) : undefined;
  if (metadata === undefined || metadata.type === 'library') return [];
  return [
    {
      name: `Chart ${directory === '' ? metadata.name : directory}`,
      path,
      chart: { kind: 'Folder', directory },
      values: [],
      release: metadata.name,
      namespace: 'default',
      includeCrds: true,
      gaps: [],
    },
  ];
}

/** Two of the same name (another cluster's folder, say) are told apart by their file. */
function distinct(applications: readonly Application[]): readonly Application[] {
  const names = new Map<string, number>();
  for (const { name } of applications) names.set(name, (names.get(name) ?? 0) + 1);
  const taken = new Map<string, number>();
  return applications.map((application) => {
    if (names.get(application.name) === 1) return application;
    const name = `${application.name} in ${application.path}`;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return { ...application, name: count === 1 ? name : `${name} (${count})` };
  });
}

function fluxObjects(manifests: readonly Manifest[], tree: RepositoryTree): FluxObjects {
  const find = (isWanted: (kind: string) => boolean, namespace: string | undefined, name: string) => {
    const named = manifests.filter(
      ({ text }) => isWanted(text(['kind']) ?? '') && text(['metadata', 'name']) === name,
    );
    const namespaceOf = ({ text }: Manifest) => text(['metadata', 'namespace']);
    const exact = named.find((manifest) => namespaceOf(manifest) === namespace);
    if (exact !== undefined) return exact;
    // A kustomization gives many of them their namespace; one alone is meant.
    const open = named.filter((manifest) => namespace === undefined || namespaceOf(manifest) === undefined);
    return open.length === 1 ? open[0] : undefined;
  };
  return {
    source: (kind, namespace, name) => find((other) => other === kind, namespace, name),
    configMap(namespace, name) {
      const manifest = find((kind) => kind === 'ConfigMap', namespace, name);
      return manifest === undefined ? generated(manifests, tree, name) : dataOf(manifest);
    },
  };
}

function dataOf(manifest: Manifest): ConfigMapData {
  const data = manifest.value['data'];
  return new Map(
    Object.entries(isRecord(data) ? data : {}).map(([key, value]) => [
      key,
      { text: String(value), path: manifest.path, key: `data.${key}` },
    ]),
  );
}

/** A ConfigMap that a kustomization makes of files. */
function generated(
  manifests: readonly Manifest[],
  tree: RepositoryTree,
  name: string,
): ConfigMapData | undefined {
  for (const manifest of manifests) {
    const folder = manifest.path.slice(0, manifest.path.lastIndexOf('/') + 1);
    for (const generator of listAt(manifest.value, ['configMapGenerator'])) {
      if (!isRecord(generator) || generator['name'] !== name) continue;
      const data = new Map<string, { readonly text: string; readonly path: string }>();
      for (const item of listAt(generator, ['files'])) {
        const [first = '', second] = String(item).split('=');
        const path = within(folder, second ?? first);
        const read = path === undefined ? undefined : fileText(tree, path);
        if (path !== undefined && read?.kind === 'Text')
          data.set(second === undefined ? (first.split('/').at(-1) ?? first) : first, {
            text: read.text,
            path,
          });
      }
      return data;
    }
  }
  return undefined;
}
