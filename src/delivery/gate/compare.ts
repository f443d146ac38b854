import type { ChartFiles } from '../chart/files.ts';
import type { RepositoryTree } from '../port.ts';
import type { Application, WantedChart } from './applications/application.ts';
import type { Side } from './render.ts';
import { comparedObjects, type Definitions, type Rendering } from './rendering/compare-objects.ts';
import type { ApplicationReport, ChartVersion, Move, ValueSource } from './report.ts';
import { upstreamSources } from './upstream-sources.ts';
import { chartValues, defaultsOf } from './values/chart-values.ts';
import { valuesNotDeclared } from './values/declared.ts';
import { movedDefaults } from './values/defaults.ts';

export interface Compared {
  readonly report: ApplicationReport;
  readonly notCovered: readonly string[];
  /** Those that drop versions. */
  readonly definitions: Definitions;
}

export interface Pair {
  readonly base: { readonly application: Application; readonly side: Side } | undefined;
  readonly head: { readonly application: Application; readonly side: Side } | undefined;
}

/** Entries of each list of a report; what exceeds it is said. */
const MAX_ENTRIES = 300;

/** What becomes of one application. `head` is where consumers of dropped versions are looked for. */
export async function compareSides({ base, head }: Pair, headTree: RepositoryTree): Promise<Compared> {
  const application = head?.application ?? base?.application;
  if (application === undefined) throw new Error('an application is on one side at least');
  const notCovered = [...new Set([...(base?.application.gaps ?? []), ...(head?.application.gaps ?? [])])];
  const { definitions, gaps, ...objects } = await comparedObjects(
    application.name,
    renderingOf(base),
    renderingOf(head),
    headTree,
  );
  notCovered.push(...gaps);
  const values = await comparedValues({ base, head }, application, notCovered);
  const report: ApplicationReport = {
    name: application.name,
    path: application.path,
    base: versionOf(base),
    head: versionOf(head),
    ...(head !== undefined && { valueSources: sourcesOf(head.application) }),
    ...(head !== undefined && upstreamOf(head.side, headTree)),
    ...objects,
    targeting: [...(base && head ? movesOf(base.application, head.application) : []), ...objects.targeting],
    ...values,
    schemaRefusals: head?.side.kind === 'SchemaRefused' ? head.side.lines : [],
    unrenderable: {
      ...(base && failureOf(base.side) !== undefined && { base: failureOf(base.side) ?? '' }),
      ...(head?.side.kind === 'Unrenderable' && { head: head.side.message }),
    },
  };
  return { report: bounded(report, notCovered), notCovered, definitions };
}

/** At the base values that the old chart refuses render nothing either. */
function failureOf(side: Side): string | undefined {
  if (side.kind === 'Unrenderable') return side.message;
  return side.kind === 'SchemaRefused' ? side.lines.join(' ') : undefined;
}

function renderingOf(one: Pair['base']): Rendering {
  if (one === undefined) return { kind: 'Nothing' };
  const { side, application } = one;
  if (side.kind !== 'Rendered') return { kind: 'Failed' };
  const { manifests, again } = side;
  return {
    kind: 'Rendered',
    manifests,
    namespace: application.namespace,
    ...(again !== undefined && { again }),
  };
}

async function comparedValues(
  { base, head }: Pair,
  { name }: Application,
  notCovered: string[],
): Promise<Pick<ApplicationReport, 'defaults' | 'valuesNotDeclared'>> {
  const nothing = { defaults: [], valuesNotDeclared: [] };
  if (base === undefined || head === undefined) return nothing;
  if (base.side.kind === 'Unrenderable' || head.side.kind === 'Unrenderable') return nothing;
  const { set } = head.side;
  if (set === undefined) {
    notCovered.push(
      `${name}: its values are too large to be compared with what the chart declares, or no mapping.`,
    );
    return nothing;
  }
  const before = await chartValues(judged(base.side.files, base.application.chart));
  const after = await chartValues(judged(head.side.files, head.application.chart));
  return {
    defaults: movedDefaults(defaultsOf(before), defaultsOf(after), set),
    valuesNotDeclared: valuesNotDeclared(before, after, set),
  };
}

/** In a folder of the repository values.yaml is ours, not the chart's: only what it depends on declares anything. */
function judged(files: ChartFiles, chart: WantedChart): ChartFiles {
  return chart.kind === 'Folder' ? { ...files, values: '' } : files;
}

function versionOf(one: Pair['base']): ChartVersion | undefined {
  if (one === undefined) return undefined;
  const { application, side } = one;
  const wanted =
    application.chart.kind === 'Packed'
      ? application.chart.reference
      : { repository: 'git', name: application.chart.directory, version: '' };
  if (side.kind === 'Unrenderable')
    return { repository: wanted.repository, chart: wanted.name, version: wanted.version };
  const { chartYaml } = side.files;
  return {
    repository: wanted.repository,
    chart: wanted.name,
    version: chartYaml.version,
    ...(chartYaml.appVersion !== undefined && { appVersion: chartYaml.appVersion }),
  };
}

function upstreamOf(side: Side, tree: RepositoryTree): Pick<ApplicationReport, 'sources'> {
  const sources = side.kind === 'Unrenderable' ? [] : upstreamSources(side.files.chartYaml, tree);
  return sources.length === 0 ? {} : { sources };
}

function sourcesOf({ chart, values }: Application): readonly ValueSource[] {
  const own =
    chart.kind === 'Folder'
      ? [{ path: `${chart.directory === '' ? '' : `${chart.directory}/`}values.yaml` }]
      : [];
  const layers = values.flatMap((layer) =>
    layer.kind === 'Text' ? [{ path: layer.path, ...(layer.key !== undefined && { key: layer.key }) }] : [],
  );
  return [...own, ...layers];
}

function movesOf(from: Application, to: Application): readonly Move[] {
  const rows: readonly (readonly [Move['what'], string | undefined, string | undefined])[] = [
    ['Namespace', from.namespace, to.namespace],
    ['Project', from.project, to.project],
    ['Source', sourceOf(from.chart), sourceOf(to.chart)],
    ['Chart', nameOf(from.chart), nameOf(to.chart)],
    ['Cluster', from.cluster, to.cluster],
    ['ReleaseName', from.release, to.release],
  ];
  return rows.flatMap(([what, one, other]) =>
    one === other ? [] : [{ what, from: one ?? '(none)', to: other ?? '(none)' }],
  );
}

const sourceOf = (chart: WantedChart): string =>
  chart.kind === 'Folder' ? 'this repository' : chart.reference.repository.replace(/\/+$/, '');

const nameOf = (chart: WantedChart): string =>
  chart.kind === 'Folder' ? chart.directory : chart.reference.name;

function bounded(report: ApplicationReport, notCovered: string[]): ApplicationReport {
  const cut = <T>(what: string, list: readonly T[]): readonly T[] => {
    if (list.length <= MAX_ENTRIES) return list;
    notCovered.push(
      `${report.name}: ${list.length - MAX_ENTRIES} more entries under ${what} are not listed.`,
    );
    return list.slice(0, MAX_ENTRIES);
  };
  return {
    ...report,
    targeting: cut('targeting', report.targeting),
    added: cut('added', report.added),
    removed: cut('removed', report.removed),
    changed: cut('changed', report.changed),
    apiVersionMoves: cut('apiVersion moves', report.apiVersionMoves),
    defaults: cut('defaults', report.defaults),
    valuesNotDeclared: cut('values not declared', report.valuesNotDeclared),
    images: cut('images', report.images),
  };
}
