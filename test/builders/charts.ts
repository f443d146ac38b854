import { packChart } from '../../src/delivery/chart/pack.ts';
import type { OfferedChart } from '../fakes/charts/server.ts';

/** A packed chart in one line: `files` by path below the chart's folder, over a Chart.yaml and one ConfigMap. */
export function aChart(
  version: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  name = 'web',
): OfferedChart {
  const all: Record<string, string | Uint8Array> = {
    'Chart.yaml': `apiVersion: v2\nname: ${name}\nversion: ${version}\nappVersion: "${version}"\n`,
    'values.yaml': 'replicas: 1\n',
    'templates/map.yaml':
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  labels:\n    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}\ndata:\n  replicas: {{ .Values.replicas | quote }}\n',
    ...files,
  };
  return {
    name,
    version,
    bytes: packChart(
      name,
      Object.entries(all).map(([path, content]) => ({
        path,
        bytes: typeof content === 'string' ? Buffer.from(content) : content,
      })),
    ),
  };
}
