import { gateColour } from './counts.ts';
import { code } from './escape.ts';
import type { ApplicationReport, ChartVersion, GateReport, ObjectChange, ObjectRef } from './report.ts';

/** Of one list; `parseReport`'s JSON has them all. */
const MAX_SHOWN = 60;
const MAX_FIELDS_SHOWN = 12;

export interface MarkdownOptions {
  /** Default 100,000: what follows is left out at a line's end, and that is said. */
  readonly maxCharacters?: number;
}

/** The report for people, and as the model reads it. Text that is not ours stands in code, and forges nothing. */
export function reportMarkdown(
  report: GateReport,
  { maxCharacters = 100_000 }: MarkdownOptions = {},
): string {
  const lines = linesOf(report);
  let left = maxCharacters;
  const cut = lines.findIndex((line) => {
    left -= line.length + 1;
    return left < 0;
  });
  if (cut < 0) return lines.join('\n');
  return [
    ...lines.slice(0, cut),
    '',
    `The report is cut here: ${lines.length - cut} lines are left out.`,
    '',
  ].join('\n');
}

/** What blocks stands first in each section, so that a cut loses the least. */
function linesOf(report: GateReport): readonly string[] {
  const verdict = gateColour(report);
  const head = verdict.colour === 'Green' ? 'Green: nothing in the way.' : `Red: ${verdict.why.join('; ')}.`;
  return [
    '# Gate report',
    '',
    `Rendered at ${code(report.baseSha.slice(0, 12))} (merge base) and ${code(report.headSha.slice(0, 12))} (head). ${head}`,
    ...list('Changed files', report.changedFiles, (path) => code(path)),
    ...report.applications.flatMap(section),
    ...(report.applications.length === 0 ? ['', 'No chart is touched.'] : []),
    ...list('Not covered', report.notCovered, (sentence) => code(sentence, 600)),
    '',
  ];
}

function section(application: ApplicationReport): readonly string[] {
  const { name, path, base, head } = application;
  return [
    '',
    `## ${code(name)}`,
    '',
    `${chartMove(base, head)}, declared in ${code(path)}.`,
    ...list('Values from', application.valueSources ?? [], ({ path: file, key }) =>
      key === undefined ? code(file) : `${code(file)}, key ${code(key)}`,
    ),
    ...list(
      'Does not render',
      Object.entries(application.unrenderable),
      ([side, words]) => `${side}: ${code(words, 2000)}`,
    ),
    ...list('Values refused by the schema', application.schemaRefusals, (line) => code(line, 500)),
    ...list(
      'Targeting changes',
      application.targeting,
      ({ what, from, to, object }) =>
        `${what}: ${code(from)} -> ${code(to)}${object === undefined ? '' : ` of ${shown(object)}`}`,
    ),
    ...list(
      'Dropped API versions',
      application.droppedVersions,
      ({ crd, kind, versions, target, consumers }) =>
        [
          `${code(crd)} (${code(kind)}) no longer serves ${versions.map((version) => code(version)).join(', ')}; ${target === undefined ? 'the definition is gone' : `${code(target)} is what is left to move to`}; manifests that declare them: ${consumers.length}`,
          ...capped(
            consumers,
            (one) => `  - ${code(one.path)} line ${one.line}: ${code(one.object)}`,
            '  - ',
          ),
        ].join('\n'),
    ),
    ...list(
      'API versions moved',
      application.apiVersionMoves,
      (one) => `${shown(one)}: ${code(one.from)} -> ${code(one.apiVersion)}`,
    ),
    ...list('Settings no longer declared', application.valuesNotDeclared, (key) => code(key)),
    ...list(
      'Defaults moved, not set here',
      application.defaults,
      ({ key, from, to }) => `${code(key)}: ${change(from, to)}`,
    ),
    ...list('Images', application.images, ({ from, to }) => `${code(from)} -> ${code(to)}`),
    ...list('Added', application.added, shown),
    ...list('Removed', application.removed, shown),
    ...list('Changed', application.changed, (one) =>
      [
        shown(one),
        ...one.fields
          .slice(0, MAX_FIELDS_SHOWN)
          .map(({ path: field, from, to }) => `  - ${code(field)}: ${change(from, to)}`),
        ...moreFields(one),
      ].join('\n'),
    ),
    ...((application.relabelled ?? 0) > 0
      ? ['', `${application.relabelled} objects changed in labels of the version or sums of others only.`]
      : []),
  ];
}

function moreFields({ fields, more }: ObjectChange): readonly string[] {
  const count = Math.max(0, fields.length - MAX_FIELDS_SHOWN) + more;
  return count > 0 ? [`  - and ${count} more fields`] : [];
}

function chartMove(base: ChartVersion | undefined, head: ChartVersion | undefined): string {
  if (base === undefined && head === undefined) return 'No chart';
  if (base === undefined && head !== undefined) return `New: chart ${version(head)}`;
  if (head === undefined && base !== undefined) return `Gone: chart ${version(base)}`;
  if (base === undefined || head === undefined) return '';
  if (base.chart === head.chart && base.repository === head.repository && base.version === head.version)
    return `Chart ${version(head)}, the same at both`;
  return `Chart ${version(base)} -> ${version(head)}`;
}

function version({ repository, chart, version: number, appVersion }: ChartVersion): string {
  const app = appVersion === undefined ? '' : ` (app ${code(appVersion)})`;
  return `${code(chart)} ${code(number)}${app} of ${code(repository)}`;
}

const shown = ({ kind, name, namespace }: ObjectRef): string =>
  `${code(`${kind}/${name}`)}${namespace === undefined ? '' : ` in ${code(namespace)}`}`;

const change = (from: string | undefined, to: string | undefined): string =>
  `${from === undefined ? 'not there' : code(from)} -> ${to === undefined ? 'not there' : code(to)}`;

function list<T>(title: string, items: readonly T[], line: (item: T) => string): readonly string[] {
  if (items.length === 0) return [];
  return ['', `### ${title} (${items.length})`, '', ...capped(items, (item) => `- ${line(item)}`, '- ')];
}

function capped<T>(items: readonly T[], line: (item: T) => string, bullet: string): readonly string[] {
  const shownItems = items.slice(0, MAX_SHOWN).map(line);
  return items.length > MAX_SHOWN
    ? [...shownItems, `${bullet}and ${items.length - MAX_SHOWN} more`]
    : shownItems;
}
