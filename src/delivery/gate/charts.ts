import { createHash } from 'node:crypto';
import {
  type ChartDependency,
  type ChartMetadata,
  parseChartLock,
  parseChartYaml,
} from '../chart/metadata.ts';
import { packChart } from '../chart/pack.ts';
import type { TarFile } from '../chart/tar.ts';
import {
  type ChartArchive,
  type ChartReference,
  type ChartSource,
  ChartUnavailableError,
  type RepositoryTree,
} from '../port.ts';
import { fileText, type WantedChart, within } from './applications/application.ts';
import { inFolder } from './applications/argo.ts';

/** Charts of one report. Throws `ChartUnavailableError`. */
export interface Charts {
  /** Folders are packed from the tree, with the charts that they depend on. */
  get(tree: RepositoryTree, wanted: WantedChart, signal?: AbortSignal): Promise<ChartArchive>;
}

/** Of a folder, before it is packed. */
const MAX_FOLDER_BYTES = 32 * 1024 * 1024;
const MAX_DEPTH = 4;

export function createCharts(source: ChartSource): Charts {
  async function fetched(reference: ChartReference, signal: AbortSignal | undefined): Promise<ChartArchive> {
    if (reference.repository === 'git')
      throw new ChartUnavailableError(
        `The chart ${reference.name} lies in another Git repository, which is not fetched.`,
      );
    return await source.fetch(reference, signal);
  }

  async function folder(
    tree: RepositoryTree,
    directory: string,
    depth: number,
    signal: AbortSignal | undefined,
  ): Promise<ChartArchive> {
    if (depth > MAX_DEPTH)
      throw new ChartUnavailableError(
        `The chart in ${directory} depends on folders of charts, more than ${MAX_DEPTH} deep.`,
      );
    const files = filesOf(tree, directory);
    const metadata = metadataOf(tree, directory);
    const locked = lockOf(tree, directory);
    for (const dependency of metadata.dependencies) {
      if (isVendored(files, dependency)) continue;
      const archive = await dependencyOf(tree, directory, dependency, locked, depth, signal);
      if (archive !== undefined)
        files.push({
          path: `charts/${dependency.name}-${archive.reference.version}.tgz`,
          bytes: archive.bytes,
        });
    }
    const bytes = packChart(metadata.name, files);
    return {
      reference: { repository: 'git', name: metadata.name, version: metadata.version },
      bytes,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    };
  }

  /** Undefined: nothing says where it comes from, which helm says better. */
  async function dependencyOf(
    tree: RepositoryTree,
    directory: string,
    { name, version, repository }: ChartDependency,
    locked: ReadonlyMap<string, string>,
    depth: number,
    signal: AbortSignal | undefined,
  ): Promise<ChartArchive | undefined> {
    if (repository === '') return undefined;
    if (repository.startsWith('file://')) {
      const path = within(directory, repository.slice('file://'.length));
      if (path === undefined)
        throw new ChartUnavailableError(
          `The chart in ${directory} depends on ${repository}, which leads out of the repository.`,
        );
      return await folder(tree, path, depth + 1, signal);
    }
    if (/^(@|alias:)/.test(repository))
      throw new ChartUnavailableError(
        `The chart in ${directory} depends on ${name} of ${repository}, a name that only the machine of its author knows; write the address in its place.`,
      );
    const exact = isExact(version) ? version : (locked.get(name) ?? version);
    return await fetched({ repository, name, version: exact }, signal);
  }

  return {
    get: (tree, wanted, signal) =>
      wanted.kind === 'Folder'
        ? folder(tree, wanted.directory, 0, signal)
        : fetched(wanted.reference, signal),
  };
}

/** A chart's folder and those of the repository that it depends on, `file://` by `file://`. */
export function foldersOf(tree: RepositoryTree, directory: string): readonly string[] {
  const found = new Set<string>();
  const left = [directory];
  for (let folder = left.pop(); folder !== undefined; folder = left.pop()) {
    if (found.has(folder)) continue;
    found.add(folder);
    const file = fileText(tree, inFolder(folder, 'Chart.yaml'));
    for (const { repository } of (file.kind === 'Text' && parseChartYaml(file.text)?.dependencies) || []) {
      const path = repository.startsWith('file://') ? within(folder, repository.slice(7)) : undefined;
      if (path !== undefined) left.push(path);
    }
  }
  return [...found];
}

const isExact = (version: string): boolean => /^v?\d+\.\d+\.\d+([-+].*)?$/.test(version);

function filesOf(tree: RepositoryTree, directory: string): TarFile[] {
  const prefix = directory === '' ? '' : `${directory}/`;
  const files: TarFile[] = [];
  let size = 0;
  for (const path of tree.paths) {
    if (!path.startsWith(prefix)) continue;
    const entry = tree.entry(path);
    if (entry?.kind === 'Symlink')
      throw new ChartUnavailableError(
        `The chart in ${directory} holds the symbolic link ${path}, which is not followed.`,
      );
    if (entry?.kind === 'TooLarge')
      throw new ChartUnavailableError(
        `The chart in ${directory} holds ${path} of ${entry.size} bytes, more than is read.`,
      );
    if (entry?.kind !== 'File') continue;
    size += entry.bytes.length;
    if (size > MAX_FOLDER_BYTES)
      throw new ChartUnavailableError(
        `The chart in ${directory} has more than ${MAX_FOLDER_BYTES / 1024 / 1024} MiB.`,
      );
    files.push({ path: path.slice(prefix.length), bytes: entry.bytes });
  }
  return files;
}

function metadataOf(tree: RepositoryTree, directory: string): ChartMetadata {
  const path = inFolder(directory, 'Chart.yaml');
  const file = fileText(tree, path);
  if (file.kind === 'None') throw new ChartUnavailableError(`${path} ${file.why}.`);
  const metadata = parseChartYaml(file.text);
  if (metadata === undefined)
    throw new ChartUnavailableError(
      `${path} is none that helm takes: name or version is missing, or it is no YAML.`,
    );
  return metadata;
}

function lockOf(tree: RepositoryTree, directory: string): ReadonlyMap<string, string> {
  const file = fileText(tree, inFolder(directory, 'Chart.lock'));
  return file.kind === 'Text' ? parseChartLock(file.text) : new Map();
}

function isVendored(files: readonly TarFile[], { name }: ChartDependency): boolean {
  return files.some(({ path }) => {
    if (path === `charts/${name}/Chart.yaml`) return true;
    const packed = /^charts\/([^/]+)\.tgz$/.exec(path)?.[1];
    return packed?.startsWith(`${name}-`) === true && /^v?\d/.test(packed.slice(name.length + 1));
  });
}
