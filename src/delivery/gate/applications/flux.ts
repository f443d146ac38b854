import type { ChartReference } from '../../port.ts';
import {
  type Application,
  isOwn,
  type Repository,
  type ValuesLayer,
  type WantedChart,
  within,
} from './application.ts';
import { listAt, type Manifest, type Path } from './manifests.ts';
import { assigned } from './set-path.ts';

/** What Flux objects name each other by; objects without a namespace get theirs from elsewhere. */
export interface FluxObjects {
  /** HelmRepository, OCIRepository, GitRepository or HelmChart. */
  source(kind: string, namespace: string | undefined, name: string): Manifest | undefined;
  /** Data of a ConfigMap, with the file that holds each key. */
  configMap(namespace: string | undefined, name: string): ConfigMapData | undefined;
}

export type ConfigMapData = ReadonlyMap<
  string,
  { readonly text: string; readonly path: string; readonly key?: string }
>;

/** The chart that a Flux HelmRelease deploys; empty for everything else. */
export function fluxApplications(
  manifest: Manifest,
  repository: Repository,
  objects: FluxObjects,
): readonly Application[] {
  if (!/^helm\.toolkit\.fluxcd\.io\//.test(manifest.text(['apiVersion']) ?? '')) return [];
  if (manifest.text(['kind']) !== 'HelmRelease') return [];
  const text = (...at: Path) => manifest.text(['spec', ...at]);
  const namespace = manifest.text(['metadata', 'namespace']);
  const own = manifest.text(['metadata', 'name']) ?? '(no name)';
  const name = `HelmRelease ${namespace === undefined ? own : `${namespace}/${own}`}`;
  const target = text('targetNamespace');
  const cluster = text('kubeConfig', 'secretRef', 'name');
  const { chart, gap } = chartOf(manifest, namespace, name, repository, objects);
  const { layers, gaps } = valuesOf(manifest, namespace, name, chart, objects);
  return [
    {
      name,
      path: manifest.path,
      chart,
      values: layers,
      release: text('releaseName') ?? (target === undefined ? own : `${target}-${own}`),
      namespace: target ?? namespace ?? 'default',
      ...(cluster !== undefined && { cluster }),
      includeCrds: true,
      gaps: [...(gap === undefined ? [] : [gap]), ...gaps],
    },
  ];
}

interface FluxChart {
  readonly chart: WantedChart;
  readonly gap?: string;
}

function chartOf(
  manifest: Manifest,
  namespace: string | undefined,
  name: string,
  repository: Repository,
  objects: FluxObjects,
): FluxChart {
  const text = (...at: Path) => manifest.text(['spec', ...at]);
  const viaRef = text('chartRef', 'kind');
  const path: Path = viaRef === undefined ? ['chart', 'spec', 'sourceRef'] : ['chartRef'];
  const kind = text(...path, 'kind') ?? 'HelmRepository';
  const sourceName = text(...path, 'name') ?? '';
  const sourceNamespace = text(...path, 'namespace') ?? namespace;
  const source = objects.source(kind, sourceNamespace, sourceName);
  if (source === undefined)
    return {
      chart: packed(
        'unknown',
        text('chart', 'spec', 'chart') ?? own(manifest),
        text('chart', 'spec', 'version') ?? '*',
      ),
      gap: `${name}: its ${kind} ${sourceName} is not in the repository.`,
    };
  if (kind === 'HelmChart') return ofSpec(source, ['spec'], sourceNamespace, name, repository, objects);
  if (kind === 'OCIRepository') return { chart: ofOci(source) };
  return ofSpec(manifest, ['spec', 'chart', 'spec'], namespace, name, repository, objects);
}

/** `chart`, `version` and `sourceRef`, as a HelmRelease's template and a HelmChart have them. */
function ofSpec(
  manifest: Manifest,
  spec: Path,
  namespace: string | undefined,
  name: string,
  repository: Repository,
  objects: FluxObjects,
): FluxChart {
  const text = (...at: Path) => manifest.text([...spec, ...at]);
  const kind = text('sourceRef', 'kind') ?? 'HelmRepository';
  const source = objects.source(
    kind,
    text('sourceRef', 'namespace') ?? namespace,
    text('sourceRef', 'name') ?? '',
  );
  const chart = text('chart') ?? '';
  const version = text('version') ?? '*';
  const url = source?.text(['spec', 'url']);
  if (kind === 'HelmRepository' && url !== undefined) return { chart: packed(url, chart, version) };
  if (kind === 'GitRepository' && url !== undefined && isOwn(repository, url)) {
    const directory = within('', chart);
    if (directory !== undefined) return { chart: { kind: 'Folder', directory } };
  }
  const gap = `${name}: a chart of ${kind} ${text('sourceRef', 'name') ?? ''} cannot be fetched from here.`;
  return { chart: packed(url === undefined ? 'unknown' : 'git', chart, version), gap };
}

function ofOci(source: Manifest): WantedChart {
  const url = (source.text(['spec', 'url']) ?? '').replace(/\/+$/, '');
  const cut = url.lastIndexOf('/');
  const version = source.text(['spec', 'ref', 'tag']) ?? source.text(['spec', 'ref', 'semver']) ?? '*';
  return packed(url.slice(0, cut), url.slice(cut + 1), version);
}

const packed = (repository: string, name: string, version: string): WantedChart => {
  const reference: ChartReference = { repository, name, version };
  return { kind: 'Packed', reference };
};

const own = (manifest: Manifest): string => manifest.text(['metadata', 'name']) ?? '';

/** `valuesFiles` of the chart, then `valuesFrom` in its order, then `values`, which win over all. */
function valuesOf(
  manifest: Manifest,
  namespace: string | undefined,
  name: string,
  chart: WantedChart,
  objects: FluxObjects,
): { readonly layers: readonly ValuesLayer[]; readonly gaps: readonly string[] } {
  const layers: ValuesLayer[] = [];
  const gaps: string[] = [];
  for (const file of listAt(manifest.value, ['spec', 'chart', 'spec', 'valuesFiles'])) {
    if (chart.kind === 'Folder') gaps.push(`${name}: its valuesFiles are not read.`);
    else layers.push({ kind: 'InChart', file: String(file) });
  }
  for (const index of listAt(manifest.value, ['spec', 'valuesFrom']).keys()) {
    const text = (key: string) => manifest.text(['spec', 'valuesFrom', index, key]);
    const source = `${text('kind') ?? 'ConfigMap'} ${text('name') ?? ''}`;
    const optional = text('optional') === 'true';
    if (text('kind') === 'Secret') {
      gaps.push(`${name}: values of ${source} are in no repository.`);
      continue;
    }
    const found = objects.configMap(namespace, text('name') ?? '')?.get(text('valuesKey') ?? 'values.yaml');
    const target = text('targetPath');
    if (found === undefined) {
      if (!optional) gaps.push(`${name}: values of ${source} are not in the repository.`);
    } else if (target === undefined) {
      const { text: content, path, key } = found;
      layers.push({ kind: 'Text', text: content, path, ...(key !== undefined && { key }) });
    } else {
      const quoted = /^(["'])(.*)\1$/s.exec(found.text.trim())?.[2];
      const set = assigned(target, quoted ?? found.text.trim(), quoted !== undefined);
      if (set === undefined) gaps.push(`${name}: ${target} reaches into a list and is left out.`);
      else
        layers.push({
          kind: 'Text',
          text: JSON.stringify(set),
          path: found.path,
          ...(found.key !== undefined && { key: found.key }),
        });
    }
  }
  const values = manifest.block(['spec', 'values']);
  if (values !== undefined)
    layers.push({ kind: 'Text', text: values, path: manifest.path, key: 'spec.values' });
  return { layers, gaps };
}
