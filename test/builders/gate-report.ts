import type { ApplicationReport, GateReport } from '../../src/delivery/gate/report.ts';

/** A report on one application in which nothing is in the way, but for what is given. */
export function aReport(
  application: Partial<ApplicationReport> = {},
  report: Partial<GateReport> = {},
): GateReport {
  return {
    version: 1,
    baseSha: 'b'.repeat(40),
    headSha: 'c'.repeat(40),
    changedFiles: ['apps/web.yaml'],
    applications: [anApplicationReport(application)],
    notCovered: [],
    ...report,
  };
}

export function anApplicationReport(over: Partial<ApplicationReport> = {}): ApplicationReport {
  const chart = { repository: 'https://charts.example.org', chart: 'web' };
  return {
    name: 'Application argocd/web',
    path: 'apps/web.yaml',
    base: { ...chart, version: '1.0.0' },
    head: { ...chart, version: '2.0.0' },
    targeting: [],
    added: [],
    removed: [],
    changed: [],
    apiVersionMoves: [],
    droppedVersions: [],
    defaults: [],
    valuesNotDeclared: [],
    schemaRefusals: [],
    unrenderable: {},
    images: [],
    ...over,
  };
}
