import { type ChartFiles, chartFiles, chartText } from '../chart/files.ts';
import {
  type ChartArchive,
  ChartUnavailableError,
  type Helm,
  type HelmRequest,
  type HelmResult,
  type RepositoryTree,
} from '../port.ts';
import { type Application, fileText, type ValuesLayer } from './applications/application.ts';
import { inFolder } from './applications/argo.ts';
import type { Charts } from './charts.ts';
import { createTurns } from './turns.ts';
import { merged, parsedValues, type Values } from './values/merge.ts';

/** One application at one commit, as far as it came. */
export type Side =
  | (Fetched & {
      readonly kind: 'Rendered';
      readonly manifests: string;
      /** A second rendering of the same, where templates make values up: what differs between the two says nothing. */
      readonly again?: string;
    })
  /** Helm's own words, one line each. */
  | (Fetched & { readonly kind: 'SchemaRefused'; readonly lines: readonly string[] })
  | { readonly kind: 'Unrenderable'; readonly message: string };

export interface Fetched {
  readonly archive: ChartArchive;
  readonly files: ChartFiles;
  readonly request: HelmRequest;
  /** What the repository sets, merged; undefined: too large to be looked into, or no YAML. */
  readonly set: Values | undefined;
}

export interface Tools {
  readonly charts: Charts;
  readonly helm: Helm;
}

/** One side of an application: where it is to be rendered. */
export interface Wanted {
  readonly tree: RepositoryTree;
  readonly application: Application;
}

/**
 * Fetches both sides and renders them at once. What is wrong with chart or values is a value; what the sandbox throws
 * is thrown.
 */
export async function renderSides(
  { charts, helm }: Tools,
  wanted: { readonly base: Wanted | undefined; readonly head: Wanted | undefined },
  signal: AbortSignal | undefined,
): Promise<{ readonly base: Side | undefined; readonly head: Side | undefined }> {
  const [base, head] = await Promise.all([
    wanted.base && prepared(charts, wanted.base, signal),
    wanted.head && prepared(charts, wanted.head, signal),
  ]);
  const requests = [base, head].flatMap((side) => (side?.kind === 'Prepared' ? [side.request] : []));
  const repeated = head?.kind === 'Prepared' && makesValuesUp(head.files) ? [head.request] : [];
  const results = [...(await templates(helm, [...requests, ...repeated], signal))];
  const side = (one: typeof base): Side | undefined => {
    if (one?.kind !== 'Prepared') return one;
    const result = results.shift();
    return result && rendered(one, result);
  };
  const sides = { base: side(base), head: side(head) };
  const again = results.shift();
  return sides.head?.kind === 'Rendered' && again?.kind === 'Rendered'
    ? { ...sides, head: { ...sides.head, again: again.manifests } }
    : sides;
}

async function templates(
  helm: Helm,
  requests: readonly HelmRequest[],
  signal: AbortSignal | undefined,
): Promise<readonly HelmResult[]> {
  if (helm.templates !== undefined && requests.length > 1) return await helm.templates(requests, signal);
  return await Promise.all(requests.map((request) => helm.template(request, signal)));
}

type Prepared = Fetched & { readonly kind: 'Prepared' };

async function prepared(
  charts: Charts,
  { tree, application }: Wanted,
  signal: AbortSignal | undefined,
): Promise<Prepared | Extract<Side, { readonly kind: 'Unrenderable' }>> {
  try {
    const archive = await charts.get(tree, application.chart, signal);
    const files = await chartFiles(archive);
    const values = await layersOf(archive, application.values);
    const { release, namespace, includeCrds, apiVersions, kubeVersion } = application;
    const request: HelmRequest = {
      chart: archive.bytes,
      values,
      release,
      namespace,
      includeCrds,
      ...(apiVersions !== undefined && { apiVersions }),
      ...(kubeVersion !== undefined && { kubeVersion }),
    };
    return { kind: 'Prepared', archive, files, request, set: await setBy(tree, application, values) };
  } catch (error) {
    if (error instanceof ChartUnavailableError) return { kind: 'Unrenderable', message: error.message };
    throw error;
  }
}

function rendered(side: Prepared, result: HelmResult): Side {
  switch (result.kind) {
    case 'Rendered':
      return { ...side, kind: 'Rendered', manifests: result.manifests };
    case 'SchemaRefused':
      return { ...side, kind: 'SchemaRefused', lines: linesOf(result.message) };
    case 'Failed':
      return { kind: 'Unrenderable', message: result.message };
  }
}

const MAKING_UP =
  /\b(rand(AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|gen(CA|SelfSignedCert|SignedCert|PrivateKey)\w*|htpasswd|bcrypt|now|shuffle)\b/;

function makesValuesUp({ templates, subcharts }: ChartFiles): boolean {
  const actions = (text: string): readonly string[] => text.match(/\{\{[\s\S]*?\}\}/g) ?? [];
  return (
    templates.some(
      ({ text }) => MAKING_UP.test(text) && actions(text).some((action) => MAKING_UP.test(action)),
    ) || [...subcharts.values()].some(makesValuesUp)
  );
}

async function layersOf(archive: ChartArchive, layers: readonly ValuesLayer[]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const layer of layers) {
    const text = layer.kind === 'Text' ? layer.text : await chartText(archive, layer.file);
    if (text === undefined) {
      const { name, version } = archive.reference;
      const file = layer.kind === 'InChart' ? layer.file : '';
      throw new ChartUnavailableError(
        `The chart ${name} ${version} has no file ${file}, which its values are to come from.`,
      );
    }
    texts.push(text);
  }
  return texts;
}

/** In a folder of the repository the chart's own values.yaml is ours too. */
async function setBy(
  tree: RepositoryTree,
  { chart }: Application,
  layers: readonly string[],
): Promise<Values | undefined> {
  const turn = createTurns();
  const own = chart.kind === 'Folder' ? fileText(tree, inFolder(chart.directory, 'values.yaml')) : undefined;
  let set: Values | undefined = {};
  for (const text of [...(own?.kind === 'Text' ? [own.text] : []), ...layers]) {
    await turn(text.length);
    const values = parsedValues(text);
    set = set === undefined || values === undefined ? undefined : merged(set, values);
  }
  return set;
}

const MAX_LINES = 50;

const linesOf = (message: string): readonly string[] =>
  message
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(0, MAX_LINES);
