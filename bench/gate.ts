import { ensurePodman } from '../hack/podman/podman.ts';
import { gateReport } from '../src/delivery/gate/gate.ts';
import { reportMarkdown } from '../src/delivery/gate/markdown.ts';
import { sandboxHelm } from '../src/delivery/helm.ts';
import type { ChartSource } from '../src/delivery/port.ts';
import { silentLogger } from '../src/kube/log.ts';
import { podmanSandbox } from '../src/sandbox/podman/podman.ts';
import { type Sandbox, SCRATCH } from '../src/sandbox/port.ts';
import { aChart } from '../test/builders/charts.ts';
import { aTree } from '../test/builders/tree.ts';
import { median, type Rows, rounded } from './row.ts';

const RUNS = 7;
const OBJECTS = 300;
const OLD = aChart('1.0.0', files('1.0.0', 'info'));
const NEW = aChart('2.0.0', files('2.0.0', 'debug'));

/** The gate report of a chart with 300 objects, against helm template twice and diff, in one container. */
export async function gateBench(): Promise<Rows> {
  const image = await ensurePodman((line) => console.error(line));
  const sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger });
  await sandbox.start();
  try {
    await sandbox.writeFile(`${SCRATCH}/old.tgz`, OLD.bytes);
    await sandbox.writeFile(`${SCRATCH}/new.tgz`, NEW.bytes);
    const reports: number[] = [];
    const diffs: number[] = [];
    // Once before it counts, and in turns, so that both meet the same machine.
    for (let run = 0; run <= RUNS; run += 1) {
      const diff = await timed(() => twiceAndDiff(sandbox));
      const report = await timed(() => oneReport(sandbox));
      if (run === 0) continue;
      diffs.push(diff);
      reports.push(report);
    }
    return {
      'gate.ratio': {
        value: rounded(median(reports) / median(diffs)),
        goal: 1.5,
        better: 'lower',
        unit: 'x helm template twice + diff',
        runs: RUNS,
        note: `${OBJECTS} objects: ${rounded(median(reports))} ms against ${rounded(median(diffs))} ms`,
      },
    };
  } finally {
    await sandbox.cleanup();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function twiceAndDiff(sandbox: Sandbox): Promise<void> {
  const template = (version: string) => `helm template web ${version}.tgz --include-crds > ${version}.yaml`;
  const result = await sandbox.exec(
    `cd ${SCRATCH} && export HELM_CACHE_HOME=${SCRATCH}/cache && ${template('old')} && ${template('new')} && diff old.yaml new.yaml | wc -l`,
  );
  if (
    result.kind !== 'Exited' ||
    result.exitCode !== 0 ||
    Number(Buffer.from(result.stdout).toString()) < OBJECTS
  )
    throw new Error(`bench: ${Buffer.from(result.stderr).toString()}`);
}

async function oneReport(sandbox: Sandbox): Promise<void> {
  const charts: ChartSource = {
    fetch: async (reference) => ({
      reference,
      bytes: (reference.version === '1.0.0' ? OLD : NEW).bytes,
      sha256: '',
    }),
  };
  const { report } = await gateReport({
    base: aTree({ 'app.yaml': application('1.0.0') }),
    head: aTree({ 'app.yaml': application('2.0.0') }),
    charts,
    helm: sandboxHelm(sandbox),
  });
  const [one] = report.applications;
  const seen = (one?.changed.length ?? 0) + (one?.relabelled ?? 0);
  if (seen !== OBJECTS || reportMarkdown(report) === '') throw new Error(`bench: ${seen} objects`);
}

/** Deployments and what goes with them; one in five changes in more than its labels. */
function files(version: string, level: string): Record<string, string> {
  const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'];
  const names = Array.from({ length: OBJECTS - 1 }, (_one, index) => index);
  return Object.fromEntries([
    [
      'templates/_labels.tpl',
      '{{- define "labels" -}}\nhelm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}\napp.kubernetes.io/name: {{ .Chart.Name }}\n{{- end }}\n',
    ],
    ...names.map((index) => [
      `templates/object${index}.yaml`,
      `apiVersion: apps/v1
kind: ${kinds[index % kinds.length]}
metadata:
  name: {{ .Release.Name }}-${index}
  labels:
    {{- include "labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: web-${index}}
  template:
    metadata:
      labels: {app: web-${index}}
    spec:
      serviceAccountName: web
      containers:
        - name: app
          image: registry.example.org/team/app-${index}:${index % 5 === 0 ? version : '1.0.0'}
          args: ["--level=${index % 5 === 0 ? level : 'info'}", "--port=8080"]
          ports: [{name: http, containerPort: 8080}]
          resources:
            requests: {cpu: 100m, memory: 128Mi}
            limits: {memory: 256Mi}
          livenessProbe:
            httpGet: {path: /healthz, port: http}
`,
    ]),
  ]);
}

const application = (version: string): string => `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {namespace: apps, name: here}
  source: {repoURL: "https://charts.example.org", chart: web, targetRevision: ${version}}
`;
