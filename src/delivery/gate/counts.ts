import type { GateCounts, GateReport } from './report.ts';
import { hasFlipped } from './values/defaults.ts';

/** How many findings of each class stand in the way. */
export function gateCounts(report: GateReport): GateCounts {
  const sum = (count: (one: GateReport['applications'][number]) => number): number =>
    report.applications.reduce((total, application) => total + count(application), 0);
  return {
    targeting: sum(({ targeting }) => targeting.length),
    apiVersion: sum(({ apiVersionMoves }) => apiVersionMoves.length),
    consumers: sum(({ droppedVersions }) =>
      droppedVersions.reduce((total, { consumers }) => total + consumers.length, 0),
    ),
    unscanned: report.notCovered.length,
    valuesDropped: sum(({ valuesNotDeclared }) => valuesNotDeclared.length),
    unrenderable: sum(({ unrenderable }) => Object.keys(unrenderable).length),
    schema: sum(({ schemaRefusals }) => (schemaRefusals.length > 0 ? 1 : 0)),
    lost: sum(({ removed, defaults }) => removed.length + defaults.filter(hasFlipped).length),
  };
}

export type GateColour =
  | { readonly colour: 'Green' }
  /** `why`: a few words for each class that blocks, the gravest first. */
  | { readonly colour: 'Red'; readonly why: readonly string[] };

/** Green only when nothing blocks and everything was looked at. */
export function gateColour(report: GateReport): GateColour {
  const counts = gateCounts(report);
  const why = WORDS.flatMap(([key, one, many]) => {
    const count = counts[key];
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
  return why.length === 0 ? { colour: 'Green' } : { colour: 'Red', why };
}

const WORDS: readonly (readonly [keyof GateCounts, string, string])[] = [
  ['unrenderable', 'rendering that failed', 'renderings that failed'],
  ['schema', 'chart whose schema refuses our values', 'charts whose schema refuses our values'],
  [
    'targeting',
    'move of a namespace, project, source or cluster',
    'moves of namespaces, projects, sources or clusters',
  ],
  ['consumers', 'manifest of a dropped API version', 'manifests of dropped API versions'],
  ['apiVersion', 'object with another apiVersion', 'objects with another apiVersion'],
  ['valuesDropped', 'setting that the new chart does not know', 'settings that the new chart does not know'],
  ['lost', 'object that is gone or default that flipped', 'objects that are gone or defaults that flipped'],
  ['unscanned', 'thing that was not looked at', 'things that were not looked at'],
];
