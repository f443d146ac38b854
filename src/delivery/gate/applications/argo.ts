import {
  type Application,
  fileText,
  isOwn,
  type Repository,
  type WantedChart,
  within,
} from './application.ts';
import { argoValues } from './argo-values.ts';
import { isRecord, listAt, type Manifest, type Path, plainManifest, valueAt } from './manifests.ts';

const GROUP = /^argoproj\.io\//;
/** Applications of one ApplicationSet that are looked at. */
const MAX_ELEMENTS = 50;

/** Charts that an Argo CD Application or ApplicationSet deploys; empty for everything else. */
export function argoApplications(manifest: Manifest, repository: Repository): readonly Application[] {
  if (!GROUP.test(manifest.text(['apiVersion']) ?? '')) return [];
  switch (manifest.text(['kind'])) {
    case 'Application':
      return ofSpec(manifest, ['spec'], nameOf(manifest, 'Application'), repository);
    case 'ApplicationSet':
      return ofSet(manifest, repository);
    default:
      return [];
  }
}

function nameOf(manifest: Manifest, kind: string): string {
  const namespace = manifest.text(['metadata', 'namespace']);
  const name = manifest.text(['metadata', 'name']) ?? '(no name)';
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** Elements of list generators are filled in; what other generators fill in is left as it stands. */
function ofSet(manifest: Manifest, repository: Repository): readonly Application[] {
  const name = nameOf(manifest, 'ApplicationSet');
  const at: Path = ['spec', 'template', 'spec'];
  const elements = listAt(manifest.value, ['spec', 'generators']).flatMap((generator) =>
    listAt(generator, ['list', 'elements']).filter(isRecord),
  );
  if (elements.length === 0) return ofSpec(manifest, at, name, repository).map(withPlaceholders);
  return elements.slice(0, MAX_ELEMENTS).flatMap((element, index) => {
    const filled = filledIn(manifest.value, element);
    if (!isRecord(filled)) return [];
    const own = valueAt(filled, ['spec', 'template', 'metadata', 'name']);
    const label = typeof own === 'string' ? own : String(index);
    const applications = ofSpec(plainManifest(manifest.path, filled), at, `${name} (${label})`, repository);
    const more = elements.length - MAX_ELEMENTS;
    return applications.map(withPlaceholders).map((application) =>
      index > 0 || more <= 0
        ? application
        : {
            ...application,
            gaps: [...application.gaps, `${name} has ${more} more elements, which were not looked at.`],
          },
    );
  });
}

/** A place that a generator fills in on the cluster decides here what is deployed. */
function withPlaceholders(application: Application): Application {
  const { chart } = application;
  const decisive =
    chart.kind === 'Folder'
      ? [chart.directory]
      : [chart.reference.repository, chart.reference.name, chart.reference.version];
  const open = decisive.find((text) => text.includes('{{'));
  if (open === undefined) return application;
  const gap = `${application.name}: its generator decides on the cluster what ${open} is.`;
  return { ...application, gaps: [...application.gaps, gap] };
}

function filledIn(value: unknown, element: Readonly<Record<string, unknown>>): unknown {
  if (typeof value === 'string')
    return value.replace(/\{\{-?\s*\.?([\w.-]+)\s*-?\}\}/g, (whole, path: string) => {
      const found = valueAt(element, path.split('.'));
      return typeof found === 'object' || found === undefined ? whole : String(found);
    });
  if (Array.isArray(value)) return value.map((item) => filledIn(item, element));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filledIn(item, element)]));
}

/** One application for each source that is a chart. */
function ofSpec(
  manifest: Manifest,
  spec: Path,
  name: string,
  repository: Repository,
): readonly Application[] {
  const sources = listAt(manifest.value, [...spec, 'sources']);
  const places: Path[] =
    sources.length > 0 ? sources.map((_source, index) => [...spec, 'sources', index]) : [[...spec, 'source']];
  const charts = places.flatMap((at) => {
    const chart = chartOf(manifest, at, repository);
    return chart === undefined ? [] : [{ at, chart }];
  });
  return charts.map(({ at, chart }, index) => {
    const text = (...path: Path) => manifest.text([...spec, ...path]);
    const helm = (key: string) => manifest.text([...at, 'helm', key]);
    const project = text('project');
    const cluster = text('destination', 'server') ?? text('destination', 'name');
    const { layers, gaps } = argoValues(manifest, { spec, source: at, chart, name }, repository);
    const kubeVersion = helm('kubeVersion');
    const apiVersions = listAt(manifest.value, [...at, 'helm', 'apiVersions']).map(String);
    return {
      name: index === 0 ? name : `${name} (${index + 1})`,
      path: manifest.path,
      chart,
      values: layers,
      release: helm('releaseName') ?? manifest.text(['metadata', 'name']) ?? 'release',
      namespace: text('destination', 'namespace') ?? 'default',
      ...(project !== undefined && { project }),
      ...(cluster !== undefined && { cluster }),
      ...(kubeVersion !== undefined && { kubeVersion }),
      ...(apiVersions.length > 0 && { apiVersions }),
      includeCrds: helm('skipCrds') !== 'true',
      gaps: [...gaps, ...foreignGaps(manifest, at, chart, name, repository)],
    };
  });
}

function chartOf(manifest: Manifest, at: Path, repository: Repository): WantedChart | undefined {
  const text = (key: string) => manifest.text([...at, key]);
  const url = text('repoURL');
  if (url === undefined) return undefined;
  const version = text('targetRevision') ?? '*';
  const chart = text('chart');
  if (chart !== undefined)
    return { kind: 'Packed', reference: { repository: withScheme(url), name: chart, version } };
  if (url.startsWith('oci://')) {
    const cut = url.replace(/\/+$/, '').lastIndexOf('/');
    const reference = { repository: url.slice(0, cut), name: url.slice(cut + 1), version };
    return { kind: 'Packed', reference };
  }
  const path = text('path');
  const directory = path === undefined ? undefined : within('', path);
  if (directory === undefined) return undefined;
  if (isOwn(repository, url))
    return fileText(repository.tree, inFolder(directory, 'Chart.yaml')).kind === 'Text'
      ? { kind: 'Folder', directory }
      : undefined;
  // Plain manifests of another repository are nobody's chart; one with settings for helm is.
  return valueAt(manifest.value, [...at, 'helm']) === undefined
    ? undefined
    : { kind: 'Packed', reference: { repository: 'git', name: `${url} ${directory}`, version } };
}

/** Argo CD writes registries without a scheme. */
const withScheme = (url: string): string => (/^[a-z]+:\/\//i.test(url) ? url : `oci://${url}`);

export const inFolder = (directory: string, file: string): string =>
  directory === '' ? file : `${directory}/${file}`;

function foreignGaps(
  manifest: Manifest,
  at: Path,
  chart: WantedChart,
  name: string,
  repository: Repository,
): readonly string[] {
  const plugin = valueAt(manifest.value, [...at, 'plugin']);
  const gaps = plugin === undefined ? [] : [`${name}: what its plugin makes of the chart is not known.`];
  if (chart.kind !== 'Folder') return gaps;
  const revision = manifest.text([...at, 'targetRevision']) ?? 'HEAD';
  // A branch moves with the merge; a tag or commit stays where it is.
  if (repository.project !== undefined && /^(v?\d+\.\d+|[0-9a-f]{40}$)/.test(revision))
    return [
      ...gaps,
      `${name} follows ${revision}, and not what is merged: the folder is taken as it is here.`,
    ];
  return gaps;
}
