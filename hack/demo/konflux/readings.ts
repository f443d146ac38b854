import type { DemoScene } from '../scene.ts';
import { BUILD, POD, TESTS } from './objects.ts';
import type { KonfluxScene } from './scene.ts';

/** What the run has read from where: what the stand-ins have written down, and the operator has counted. */
export function readings(scene: DemoScene, konflux: KonfluxScene, metrics: string): string {
  const gitlab = scene.gitlab.requests.filter(({ token }) => token === scene.tokens.tool);
  const calls = [
    ...metrics.matchAll(/^hummingbird_source_calls_total\{tool="(\w+)",outcome="(\w+)"\} (\d+)$/gm),
  ];
  return [
    'GitLab, with the read token:',
    ...distinct(gitlab.map(({ path }) => decodeURIComponent(path.split('?')[0] ?? ''))),
    `KubeArchive, with the kubeconfig's token (the build ${BUILD}, which the cluster has no more):`,
    ...distinct(konflux.archive.requests.map(({ path, query }) => `${path} ${query['labelSelector'] ?? ''}`)),
    'The cluster, with the same token, writes nothing down; nobody else has these:',
    `  TaskRun of ${TESTS}`,
    `  log of the pod ${POD}`,
    'Testing Farm, without any:',
    ...distinct(konflux.farm.requests),
    'Calls of the tools, as the operator counts them:',
    ...calls.map(([, tool, outcome, count]) => `  ${count}x ${tool} ${outcome}`),
  ].join('\n');
}

function distinct(lines: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].map(([line, count]) => `  ${count}x ${line}`);
}
