import { createHash } from 'node:crypto';
import { parseAllDocuments } from 'yaml';
import { packChart } from '../../delivery/chart/pack.ts';
import { type ChartSource, ChartUnavailableError, type Helm, type HelmResult } from '../../delivery/port.ts';
import { check } from '../../delivery/structural/check.ts';
import {
  dotted,
  isMapping,
  jsonValue,
  type Mapping,
  type Value,
  valueAt,
} from '../../delivery/structural/value.ts';
import type { EvalChart } from '../delivery-case.ts';

export interface EvalCharts {
  readonly charts: ChartSource;
  /** Renders what the case says of the chart: a pure function of the values. Helm itself is tried elsewhere. */
  readonly helm: Helm;
}

/** Charts of one case, by version. */
export function evalCharts(name: string, versions: ReadonlyMap<string, EvalChart>): EvalCharts {
  const packed = new Map(
    [...versions].map(([version, chart]) => [version, packedChart(name, version, chart)]),
  );
  const byBytes = new Map([...packed].map(([version, { sha256 }]) => [sha256, versions.get(version)]));
  const known = new WeakMap<Uint8Array, EvalChart>();
  return {
    charts: {
      async fetch(reference) {
        const one = packed.get(reference.version);
        if (one === undefined || reference.name !== name)
          throw new ChartUnavailableError(
            `The chart ${reference.name} ${reference.version} is not in ${reference.repository}.`,
          );
        return { reference, ...one };
      },
    },
    helm: {
      async template({ chart, values, namespace, includeCrds }) {
        const found = known.get(chart) ?? byBytes.get(sha256Of(chart));
        if (found === undefined) return failed('this chart is not one of the case');
        known.set(chart, found);
        return rendered(found, values, namespace, includeCrds === true);
      },
    },
  };
}

function packedChart(name: string, version: string, chart: EvalChart) {
  const files: Readonly<Record<string, string>> = {
    'Chart.yaml': `apiVersion: v2\nname: ${name}\nversion: ${version}\nappVersion: "${version}"\n`,
    'values.yaml': chart.values,
    ...(chart.schema !== undefined && { 'values.schema.json': JSON.stringify(chart.schema) }),
  };
  const bytes = packChart(
    name,
    Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) })),
  );
  return { bytes, sha256: sha256Of(bytes) };
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

function rendered(
  chart: EvalChart,
  layers: readonly string[],
  namespace: string,
  includeCrds: boolean,
): HelmResult {
  if (chart.fails !== undefined) return failed(chart.fails);
  const defaults = defaultsOf(chart);
  const set = layers.map(mappingOf).reduce(merged, {});
  const values = merged(defaults, set);
  const findings =
    chart.schema === undefined ? [] : check(values, jsonValue(chart.schema), { kind: 'Values' });
  if (findings.length > 0)
    return {
      kind: 'SchemaRefused',
      message: findings
        .map(({ path, detail }) => `- at '/${path.join('/')}': ${dotted(path)} ${detail}`)
        .join('\n'),
    };
  const objects = chart.objects
    .filter(({ when }) => Object.entries(when).every(([key, wanted]) => isMet(at(values, key), wanted)))
    .map((object) => manifest(object, values, namespace));
  const all = [...(includeCrds ? chart.crds.map(definition) : []), ...objects];
  return { kind: 'Rendered', manifests: all.map((one) => `---\n${JSON.stringify(one)}\n`).join('') };
}

/** Read once: thousands of bumps render each chart several times. */
function defaultsOf(chart: EvalChart): Mapping {
  const known = readDefaults.get(chart) ?? mappingOf(chart.values);
  readDefaults.set(chart, known);
  return known;
}

const readDefaults = new WeakMap<EvalChart, Mapping>();

const failed = (message: string): HelmResult => ({ kind: 'Failed', reason: 'Template', message });

const at = (values: Value, key: string): Value | undefined => valueAt(values, key.split('.'));

function isMet(value: Value | undefined, wanted: string | number | boolean): boolean {
  const text = value === undefined ? '' : String(value);
  const word = String(wanted);
  return word.endsWith('*') ? text.startsWith(word.slice(0, -1)) : text === word;
}

type ChartObject = EvalChart['objects'][number];

function manifest(object: ChartObject, values: Value, namespace: string): Mapping {
  const { apiVersion, kind, name, fields } = object;
  const bare: Mapping = {
    apiVersion,
    kind,
    metadata: { name, namespace: object.namespace ?? namespace },
  };
  return Object.entries(fields).reduce<Mapping>((made, [path, field]) => {
    const value =
      typeof field === 'string' && field.startsWith('$') ? (at(values, field.slice(1)) ?? null) : field;
    return merged(
      made,
      path.split('.').reduceRight<Mapping | Value>((below, key) => ({ [key]: below }), value),
    );
  }, bare);
}

const definition = ({ group, kind, plural, versions }: EvalChart['crds'][number]): Mapping => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    names: { kind, plural },
    scope: 'Namespaced',
    versions: Object.entries(versions).map(([name, schema]) => ({
      name,
      served: true,
      storage: true,
      schema: { openAPIV3Schema: jsonValue(schema) },
    })),
  },
});

function mappingOf(text: string): Mapping {
  const value = jsonValue(parseAllDocuments(text, { logLevel: 'silent' })[0]?.toJS());
  return isMapping(value) ? value : {};
}

/** As helm joins values: mappings are merged, everything else is replaced. */
function merged(under: Mapping, over: Value): Mapping {
  if (!isMapping(over)) return under;
  return {
    ...under,
    ...Object.fromEntries(
      Object.entries(over).map(([key, value]): [string, Value] => {
        const below = under[key];
        return [key, isMapping(below) && isMapping(value) ? merged(below, value) : value];
      }),
    ),
  };
}
