import type { Change, Delivery, DeliveryOutcome } from '../deliver.ts';
import type { AppliedEdit, RejectedEdit } from '../edits/apply.ts';
import type { Testimony } from '../evidence/testimony.ts';
import { code } from '../gate/escape.ts';
import type { LostValue } from '../migrate/questions.ts';
import type { RestructuredDocument } from '../migrate/restructure.ts';
import type { MigratedValues } from '../migrate/values.ts';
import type { Operation } from '../structural/plan.ts';
import { dotted, shown } from '../structural/value.ts';

/** Of one list; the run's record has them all. */
const MAX_ROWS = 50;

/**
 * What people read of a bump, as Markdown, without the word that comes of the push. The verdict stands in it once;
 * what comes from repositories and models stands in code or is made inert by whoever posts it.
 */
export function noteText({
  outcome,
  reportText,
  live,
}: Pick<Delivery, 'outcome' | 'reportText' | 'live'>): string {
  return [
    ...body(outcome),
    ...folded('Gate report', withoutTitle(reportText)),
    ...(live === undefined ? [] : folded('What is running', live)),
    '_Made by an agent: no review, and no approval._',
  ]
    .join('\n')
    .trimEnd();
}

/** A few words for the commit status, at most 140 characters. */
export function statusText(outcome: DeliveryOutcome): string {
  switch (outcome.kind) {
    case 'NoAction':
      return clip(`nothing to do: ${outcome.why}`);
    case 'Explained':
      return outcome.look ? 'worth a look before it is merged' : 'explained';
    case 'Push':
      return clip(`fixed: ${whatChanged(outcome.change)}`);
    case 'Escalate':
      return clip(`needs a person: ${outcome.reason}`);
  }
}

function body(outcome: DeliveryOutcome): readonly string[] {
  switch (outcome.kind) {
    case 'NoAction':
      return [
        '### Nothing to do',
        '',
        ...(outcome.verdict === undefined ? [`**${outcome.why}.**`] : words(outcome.verdict)),
        '',
      ];
    case 'Explained':
      return [
        outcome.look ? '### Worth a look' : '### Explained',
        '',
        ...words(outcome.verdict),
        '',
        `<sub>${grounds(outcome.testimony)}</sub>`,
        '',
        ...upstream(outcome.testimony),
      ];
    case 'Push':
      return ['### Fixed', '', ...changeWords(outcome.change), ...afterWords(outcome.after)];
    case 'Escalate':
      return ['### Needs a person', '', ...escalationWords(outcome), ...upstream(outcome.testimony)];
  }
}

const words = ({
  summary,
  reasoning,
}: {
  readonly summary: string;
  readonly reasoning: string;
}): readonly string[] => [
  `**${oneLine(summary)}**`,
  ...(reasoning.trim() === '' ? [] : ['', reasoning.trim()]),
];

function escalationWords(outcome: Extract<DeliveryOutcome, { kind: 'Escalate' }>): readonly string[] {
  const { verdict, reasons, rejected, withheld } = outcome;
  const told = rejected.length > 0 ? [] : reasons;
  return [
    ...(verdict === undefined ? [] : [...words(verdict), '']),
    // A judgement of the model's own needs no second sentence of ours.
    ...(verdict !== undefined && told.length <= 1 && withheld.length === 0 ? [] : list(told, (one) => one)),
    ...refusedEdits(rejected),
    ...(withheld.length === 0 ? [] : ['Sound by themselves, and not pushed:', '', ...editTable(withheld)]),
  ];
}

function changeWords(change: Change): readonly string[] {
  switch (change.kind) {
    case 'Edits':
      return [...words(change.verdict), '', ...editTable(change.applied), ...refusedEdits(change.rejected)];
    case 'Restructured':
      return [
        `**${whatChanged(change)}.**`,
        '',
        ...list(change.documents, documentLine),
        ...lostValues(change.lost),
      ];
    case 'Values':
      return [
        `**${whatChanged(change)}.**`,
        '',
        ...change.applications.flatMap(valuesLines),
        ...lostValues(change.lost),
      ];
  }
}

const whatChanged = (change: Change): string => {
  switch (change.kind) {
    case 'Edits':
      return count(change.applied.length, 'value was edited', 'values were edited');
    case 'Restructured':
      return `${count(
        change.documents.length,
        'manifest was moved to a version',
        'manifests were moved to versions',
      )} that the new chart serves`;
    case 'Values':
      return `values of ${count(change.applications.length, 'application', 'applications')} were moved to what the new chart takes`;
  }
};

function documentLine({ path, kind, object, lines, notes, respelled }: RestructuredDocument): string {
  const how = {
    Fits: 'fits as it is',
    NotJudged: 'was not judged: no schema is known for it',
    Reshaped: 'was reshaped',
  }[kind];
  const more = [
    ...(notes === undefined || notes.trim() === '' ? [] : [oneLine(notes)]),
    ...respelled.map(
      ({ path: key, from, to }) => `${code(key)} was spelled ${code(from)} and is ${code(to)}`,
    ),
  ];
  return [
    `${code(path)}, line ${lines.join(', ')}: ${code(object)} ${how}`,
    ...more.map((one) => `  - ${one}`),
  ].join('\n');
}

const valuesLines = ({ name, path, operations, notes }: MigratedValues): readonly string[] => [
  `${code(name)}, in ${code(path)}:`,
  '',
  ...list(operations, operationLine),
  ...(notes.trim() === '' ? [] : [oneLine(notes), '']),
];

function operationLine(operation: Operation): string {
  const key = code(dotted(operation.path));
  switch (operation.kind) {
    case 'Rename':
      return `${key} is ${code(dotted([...operation.path.slice(0, -1), operation.to]))} now, with the same value`;
    case 'Set':
      return operation.before === undefined
        ? `${key} was set to ${code(shown(operation.value))}`
        : `${key}: ${code(shown(operation.before))} -> ${code(shown(operation.value))}`;
    case 'Remove':
      return `${key} is gone; it was ${code(shown(operation.value))}`;
  }
}

/** All of them, always: the one thing that no check can see. */
const lostValues = (lost: readonly LostValue[]): readonly string[] =>
  lost.length === 0
    ? []
    : [
        '**Did not come across.** Each of these had a meaning for somebody; look at them before this is merged:',
        '',
        ...lost.map(({ where, key, value }) => `- ${code(where)}: ${code(key)} was ${code(shown(value))}`),
        '',
      ];

const editTable = (edits: readonly AppliedEdit[]): readonly string[] => [
  '| file | key | from | to | why |',
  '|---|---|---|---|---|',
  ...edits.map(
    ({ path, line, key, before, after, rationale }) =>
      `| ${cell(`${path}:${line}`)} | ${cell(key)} | ${cell(before)} | ${cell(after)} | ${oneLine(rationale).replaceAll('|', '\\|')} |`,
  ),
  '',
];

const refusedEdits = (rejected: readonly RejectedEdit[]): readonly string[] =>
  rejected.length === 0
    ? []
    : [
        'Refused:',
        '',
        ...list(
          rejected,
          ({ path, key, message, edit }) =>
            `${code(path)}, ${code(key)} to ${code(edit.to)}: ${oneLine(message)}`,
        ),
      ];

const afterWords = (after: readonly string[]): readonly string[] => [
  after.length === 0
    ? 'The repository was rendered with this change: the gate is green.'
    : `The repository was rendered with this change: it renders, and this is left: ${after.join('; ')}.`,
  '',
];

function grounds({ notes, commits, silence }: Testimony): string {
  const on = [
    ...(notes === undefined ? [] : ['release notes']),
    ...(commits === undefined ? [] : ['commits']),
  ];
  return on.length > 0
    ? `Grounded in the gate report and ${on.join(' and ')}.`
    : `Grounded in the gate report alone${silence === undefined ? '' : `: ${oneLine(silence).replace(/\.+$/, '')}`}.`;
}

/** Testimony, and named as such. */
const upstream = ({ notes, commits }: Testimony): readonly string[] =>
  notes === undefined && commits === undefined
    ? []
    : folded('What was written upstream', [notes, commits].filter((one) => one !== undefined).join('\n\n'));

const folded = (title: string, text: string): readonly string[] => [
  `<details><summary>${title}</summary>`,
  '',
  text.trim(),
  '',
  '</details>',
  '',
];

const withoutTitle = (report: string): string => report.replace(/^# .*\n+/, '');

function list<T>(items: readonly T[], line: (item: T) => string): readonly string[] {
  if (items.length === 0) return [];
  const more = items.length > MAX_ROWS ? [`- and ${items.length - MAX_ROWS} more`] : [];
  return [...items.slice(0, MAX_ROWS).map((item) => `- ${line(item)}`), ...more, ''];
}

const cell = (text: string): string => code(text).replaceAll('|', '\\|');
const count = (of: number, one: string, many: string): string => `${of} ${of === 1 ? one : many}`;
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();
const clip = (text: string): string => (text.length <= 140 ? text : `${text.slice(0, 137)}...`);
