import { z } from 'zod';
import type { GateReport } from './report.ts';

const text = z.string();
const ref = { apiVersion: text, kind: text, namespace: text.exactOptional(), name: text };
const chartVersion = z.strictObject({
  repository: text,
  chart: text,
  version: text,
  appVersion: text.exactOptional(),
});
const change = { from: text.exactOptional(), to: text.exactOptional() };

const application = z.strictObject({
  name: text,
  path: text,
  base: chartVersion.optional(),
  head: chartVersion.optional(),
  sources: z.array(z.strictObject({ url: text, named: z.boolean() })).exactOptional(),
  valueSources: z.array(z.strictObject({ path: text, key: text.exactOptional() })).exactOptional(),
  targeting: z.array(
    z.strictObject({
      what: z.enum(['Namespace', 'Project', 'Source', 'Chart', 'Cluster', 'ReleaseName']),
      from: text,
      to: text,
      object: z.strictObject(ref).exactOptional(),
    }),
  ),
  added: z.array(z.strictObject(ref)),
  removed: z.array(z.strictObject(ref)),
  changed: z.array(
    z.strictObject({ ...ref, fields: z.array(z.strictObject({ path: text, ...change })), more: z.int() }),
  ),
  relabelled: z.int().exactOptional(),
  apiVersionMoves: z.array(z.strictObject({ ...ref, from: text })),
  droppedVersions: z.array(
    z.strictObject({
      crd: text,
      group: text,
      kind: text,
      versions: z.array(text),
      target: text.optional(),
      consumers: z.array(z.strictObject({ path: text, line: z.int(), object: text })),
    }),
  ),
  defaults: z.array(z.strictObject({ key: text, ...change })),
  valuesNotDeclared: z.array(text),
  schemaRefusals: z.array(text),
  unrenderable: z.strictObject({ base: text.exactOptional(), head: text.exactOptional() }),
  images: z.array(z.strictObject({ from: text, to: text })),
});

const gateReport = z.strictObject({
  version: z.literal(1),
  baseSha: text,
  headSha: text,
  changedFiles: z.array(text),
  applications: z.array(application),
  notCovered: z.array(text),
});

export const reportJson = (report: GateReport): string => JSON.stringify(report);

/** Reads what `reportJson` wrote. Throws an error that says what is wrong, for another version too. */
export function parseReport(json: string): GateReport {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new Error('this gate report is no JSON', { cause });
  }
  const parsed = gateReport.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Error(`this gate report is not one of version 1: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  return withSides(parsed.data);
}

/** JSON has no undefined: what is left out there is one here. */
function withSides(report: z.infer<typeof gateReport>): GateReport {
  return {
    ...report,
    applications: report.applications.map((one) => ({
      ...one,
      base: one.base,
      head: one.head,
      droppedVersions: one.droppedVersions.map((dropped) => ({ ...dropped, target: dropped.target })),
    })),
  };
}
