import { merged, type Values } from '../values/merge.ts';
import {
  fileText,
  isOwn,
  type Repository,
  type ValuesLayer,
  type WantedChart,
  within,
} from './application.ts';
import { listAt, type Manifest, type Path } from './manifests.ts';
import { assigned } from './set-path.ts';

interface Place {
  /** Where the Application's spec is. */
  readonly spec: Path;
  /** Where the source with the chart is. */
  readonly source: Path;
  readonly chart: WantedChart;
  readonly name: string;
}

export interface Layers {
  readonly layers: readonly ValuesLayer[];
  readonly gaps: readonly string[];
}

/**
 * Values of a source in the order in which Argo CD applies them: files, then `valuesObject` or else `values`, then
 * parameters.
 */
export function argoValues(manifest: Manifest, place: Place, repository: Repository): Layers {
  const helm: Path = [...place.source, 'helm'];
  const files = ofFiles(manifest, helm, place, repository);
  const parameters = ofParameters(manifest, helm, place);
  const unread = listAt(manifest.value, [...helm, 'fileParameters']).length;
  return {
    layers: [...files.layers, ...inline(manifest, helm), ...parameters.layers],
    gaps: [
      ...files.gaps,
      ...parameters.gaps,
      ...(unread > 0 ? [`${place.name}: its fileParameters are not read.`] : []),
    ],
  };
}

function inline(manifest: Manifest, helm: Path): readonly ValuesLayer[] {
  const object = manifest.block([...helm, 'valuesObject']);
  const key = (last: string) => [...helm, last].join('.');
  if (object !== undefined)
    return [{ kind: 'Text', text: object, path: manifest.path, key: key('valuesObject') }];
  const text = manifest.text([...helm, 'values']);
  return text === undefined || text.trim() === ''
    ? []
    : [{ kind: 'Text', text, path: manifest.path, key: key('values') }];
}

function ofFiles(manifest: Manifest, helm: Path, place: Place, repository: Repository): Layers {
  const layers: ValuesLayer[] = [];
  const gaps: string[] = [];
  const optional = manifest.text([...helm, 'ignoreMissingValueFiles']) === 'true';
  for (const item of listAt(manifest.value, [...helm, 'valueFiles'])) {
    const file = String(item);
    const found = fileOf(file, manifest, place, repository);
    if (found.kind === 'Gap') gaps.push(`${place.name}: ${found.why}.`);
    else if (found.kind === 'InChart') layers.push({ kind: 'InChart', file: found.file });
    else {
      const read = fileText(repository.tree, found.path);
      if (read.kind === 'Text') layers.push({ kind: 'Text', text: read.text, path: found.path });
      else if (!(optional && repository.tree.entry(found.path) === undefined))
        gaps.push(`${place.name}: the values file ${found.path} ${read.why}.`);
    }
  }
  return { layers, gaps };
}

type ValueFile =
  | { readonly kind: 'Path'; readonly path: string }
  | { readonly kind: 'InChart'; readonly file: string }
  | { readonly kind: 'Gap'; readonly why: string };

function fileOf(file: string, manifest: Manifest, place: Place, repository: Repository): ValueFile {
  if (/^[a-z]+:\/\//i.test(file)) return { kind: 'Gap', why: `the values at ${file} are not fetched` };
  if (file.includes('{{'))
    return { kind: 'Gap', why: `its generator decides on the cluster what ${file} is` };
  if (file.startsWith('$')) {
    const [ref = '', ...rest] = file.slice(1).split('/');
    const url = urlOfRef(manifest, place.spec, ref);
    if (url === undefined) return { kind: 'Gap', why: `no source has the ref ${ref}, which ${file} names` };
    if (!isOwn(repository, url)) return { kind: 'Gap', why: `${file} lies in another repository, ${url}` };
    return inTree('', rest.join('/'));
  }
  if (place.chart.kind === 'Folder') return inTree(place.chart.directory, file);
  return { kind: 'InChart', file };
}

function inTree(folder: string, file: string): ValueFile {
  const path = within(folder, file);
  return path === undefined
    ? { kind: 'Gap', why: `${file} leads out of the repository` }
    : { kind: 'Path', path };
}

function urlOfRef(manifest: Manifest, spec: Path, ref: string): string | undefined {
  const index = listAt(manifest.value, [...spec, 'sources']).findIndex(
    (_source, at) => manifest.text([...spec, 'sources', at, 'ref']) === ref,
  );
  return index < 0 ? undefined : manifest.text([...spec, 'sources', index, 'repoURL']);
}

function ofParameters(manifest: Manifest, helm: Path, place: Place): Layers {
  let values: Values = {};
  const gaps: string[] = [];
  const parameters = listAt(manifest.value, [...helm, 'parameters']);
  for (const index of parameters.keys()) {
    const text = (key: string) => manifest.text([...helm, 'parameters', index, key]);
    const name = text('name') ?? '';
    const set = assigned(name, text('value') ?? '', text('forceString') === 'true');
    if (set === undefined)
      gaps.push(`${place.name}: the parameter ${name} reaches into a list and is left out.`);
    else values = merged(values, set);
  }
  if (Object.keys(values).length === 0) return { layers: [], gaps };
  const layer: ValuesLayer = {
    kind: 'Text',
    text: JSON.stringify(values),
    path: manifest.path,
    key: [...helm, 'parameters'].join('.'),
  };
  return { layers: [layer], gaps };
}
