import type { RepositoryTree, TreeEntry } from '../../delivery/port.ts';
import type { DeliveryCase } from '../delivery-case.ts';

/** The repository of a case at both commits. */
export interface EvalRepository {
  readonly base: RepositoryTree;
  readonly head: RepositoryTree;
  /** File of the application that is bumped. */
  readonly path: string;
  /** What stands before the dotted key of one of its values in that file. */
  readonly valuesAt: readonly string[];
}

export function evalRepository(one: DeliveryCase): EvalRepository {
  const { bump, values, files, changed, movedTo } = one;
  const path = `apps/${bump.chart}.yaml`;
  const manifest = bump.form === 'Flux' ? helmRelease : application;
  const text = (version: string, namespace: string) =>
    manifest({ ...bump, namespace }, version, values.trimEnd());
  return {
    base: tree({ ...files, [path]: text(bump.from, bump.namespace) }, 'b'),
    head: tree({ ...files, [path]: text(bump.to, movedTo?.namespace ?? bump.namespace), ...changed }, 'c'),
    path,
    valuesAt: bump.form === 'Flux' ? ['spec', 'values'] : ['spec', 'source', 'helm', 'valuesObject'],
  };
}

export const REPOSITORY_URL = 'https://charts.example.org';

function application({ chart, namespace }: DeliveryCase['bump'], version: string, values: string): string {
  return `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: ${chart}
  namespace: argocd
spec:
  project: default
  destination:
    server: https://kubernetes.default.svc
    namespace: ${namespace}
  source:
    repoURL: ${REPOSITORY_URL}
    chart: ${chart}
    targetRevision: ${version}
${values === '' ? '' : `    helm:\n      valuesObject:\n${indented(values, 8)}\n`}`;
}

function helmRelease({ chart, namespace }: DeliveryCase['bump'], version: string, values: string): string {
  return `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: ${chart}
  namespace: ${namespace}
spec:
  interval: 10m
  chart:
    spec:
      chart: ${chart}
      version: ${version}
      sourceRef:
        kind: HelmRepository
        name: charts
${values === '' ? '' : `  values:\n${indented(values, 4)}\n`}---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
  namespace: ${namespace}
spec:
  interval: 1h
  url: ${REPOSITORY_URL}
`;
}

const indented = (text: string, by: number): string => text.replaceAll(/^(?=.)/gm, ' '.repeat(by));

function tree(files: Readonly<Record<string, string>>, letter: string): RepositoryTree {
  const entries = new Map<string, TreeEntry>(
    Object.entries(files).map(([path, text]) => [
      path,
      { kind: 'File', bytes: Buffer.from(text), executable: false },
    ]),
  );
  return { sha: letter.repeat(40), paths: [...entries.keys()].sort(), entry: (path) => entries.get(path) };
}
