import { gateColour, gateCounts } from '../gate/counts.ts';
import type { GateCounts, GateReport } from '../gate/report.ts';

export interface PathSettings {
  readonly explainGreen: boolean;
  readonly migrateDroppedVersions: boolean;
  readonly structuralMigration: boolean;
}

/** What is done about a report; which one is never the model's choice. */
export type Path =
  /** Green, and nothing to be said. */
  | { readonly kind: 'Nothing'; readonly why: string }
  | { readonly kind: 'Explain' }
  /** Only manifests of dropped API versions are in the way. */
  | { readonly kind: 'Restructure' }
  /** Only the new chart's schema is in the way, which refuses our values. */
  | { readonly kind: 'Values' }
  /** Nothing in the repository could clear it: no model is asked. */
  | { readonly kind: 'Escalate'; readonly why: string }
  | { readonly kind: 'Triage' };

/** In the strict order of the contract: what code can prove comes before what a model may judge. */
export function choosePath(report: GateReport, settings: PathSettings): Path {
  const counts = gateCounts(report);
  if (gateColour(report).colour === 'Green') return greenPath(report, settings);
  if (
    onlyBlocking(counts, ['consumers', 'apiVersion']) &&
    counts.consumers > 0 &&
    settings.migrateDroppedVersions
  )
    return { kind: 'Restructure' };
  // What the schema refuses is not declared any more, and defaults may have flipped as well: both show again behind it.
  if (
    counts.schema > 0 &&
    onlyBlocking(counts, ['schema', 'valuesDropped', 'lost']) &&
    settings.structuralMigration
  )
    return { kind: 'Values' };
  const out = beyondRepair(report, counts);
  return out === undefined ? { kind: 'Triage' } : { kind: 'Escalate', why: out };
}

function greenPath(report: GateReport, { explainGreen }: PathSettings): Path {
  if (!explainGreen) return { kind: 'Nothing', why: 'the gate is green, and explanations are switched off' };
  const changes = report.applications.some(
    ({ added, changed, images, defaults }) =>
      added.length + changed.length + images.length + defaults.length > 0,
  );
  return changes
    ? { kind: 'Explain' }
    : { kind: 'Nothing', why: 'the gate is green, and nothing that is rendered changes' };
}

const onlyBlocking = (counts: GateCounts, classes: readonly (keyof GateCounts)[]): boolean => {
  const blocking = Object.entries(counts).filter(([, count]) => count > 0);
  return blocking.length > 0 && blocking.every(([name]) => classes.some((one) => one === name));
};

/** One clear sentence, without its full stop. */
function beyondRepair(report: GateReport, counts: GateCounts): string | undefined {
  for (const { name, unrenderable } of report.applications) {
    if (unrenderable.head !== undefined)
      return `${name} does not render at the new version: ${firstLine(unrenderable.head)}`;
    if (unrenderable.base !== undefined)
      return `${name} does not render at the old version either, so that nothing can be compared: ${firstLine(unrenderable.base)}`;
  }
  if (report.applications.length === 0 && counts.unscanned > 0)
    return `nothing could be looked at: ${firstLine(report.notCovered[0] ?? '')}`;
  const gone = report.applications.flatMap(({ droppedVersions }) =>
    droppedVersions.filter(({ target, consumers }) => target === undefined && consumers.length > 0),
  );
  if (gone[0] !== undefined)
    return `the definition ${gone[0].crd} is gone, and manifests of the repository need it`;
  if (onlyBlocking(counts, ['apiVersion']))
    return "objects of the chart itself move to another apiVersion, which no edit of the repository's values changes";
  return undefined;
}

const firstLine = (text: string): string => (text.split('\n')[0] ?? '').replace(/\.+$/, '').slice(0, 300);
