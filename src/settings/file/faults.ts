import type { z } from 'zod';
import { SettingsError } from '../operator.ts';
import { nearest } from './nearest.ts';
import type { Path, Source } from './source.ts';

/** From 1 on, as editors count. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface Fault extends Place {
  /** The key, `workflows.review.projects.group/app.tokens.gitlab`; empty for the whole file. */
  readonly where: string;
  /** What is wrong and what to do; never a value of the file, since a token may stand where its name belongs. */
  readonly message: string;
}

/** Everything that is wrong with one file, in the order of its lines. */
export class ConfigError extends SettingsError {
  readonly path: string;
  readonly faults: readonly Fault[];

  constructor(path: string, faults: readonly Fault[]) {
    const sorted = [...faults].sort((a, b) => a.line - b.line || a.column - b.column);
    const count = sorted.length === 1 ? '1 fault' : `${sorted.length} faults`;
    super([`configuration ${path}: ${count}`, ...sorted.map((fault) => faultLine(path, fault))].join('\n'));
    this.path = path;
    this.faults = sorted;
  }
}

/** `file:line:column: key: what is wrong`, which editors and terminals make a link. */
export function faultLine(path: string, { line, column, where, message }: Fault): string {
  return `${path}:${line}:${column}: ${where === '' ? '' : `${where}: `}${message}`;
}

export function faultAt(source: Source, path: Path, message: string): Fault {
  return { ...source.place(path), where: path.map(String).join('.'), message };
}

/** What the schema refuses. `keysAt` gives the keys that can stand in the map at a path. */
export function schemaFaults(
  source: Source,
  issues: readonly z.core.$ZodIssue[],
  keysAt: (path: Path) => readonly string[],
): readonly Fault[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        ...source.place([...issue.path, key], 'key'),
        where: issue.path.map(String).join('.') || '(top level)',
        message: unknownKey(key, keysAt(issue.path)),
      }));
    if (issue.code === 'invalid_key')
      return [
        {
          ...faultAt(source, issue.path, issue.issues.at(-1)?.message ?? issue.message),
          ...source.place(issue.path, 'key'),
        },
      ];
    return [faultAt(source, issue.path, wording(issue, valueAt(source.value, issue.path)))];
  });
}

function unknownKey(key: string, known: readonly string[]): string {
  const meant = nearest(key, known);
  const advice =
    meant !== undefined
      ? `did you mean ${meant}?`
      : known.length === 0
        ? 'remove it'
        : `there are: ${known.join(', ')}`;
  return `there is no key ${JSON.stringify(key)} here; ${advice}`;
}

function wording(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined
        ? `is missing; add ${KINDS[issue.expected] ?? issue.expected}`
        : `must be ${KINDS[issue.expected] ?? issue.expected}, not ${kindOf(value)}`;
    case 'invalid_value': {
      const known = issue.values.map(String);
      if (value === undefined) return `is missing; it is one of ${known.join(', ')}`;
      const meant = typeof value === 'string' ? nearest(value, known) : undefined;
      return `must be one of ${known.join(', ')}${meant === undefined ? '' : `; did you mean ${meant}?`}`;
    }
    case 'too_small':
      return issue.origin === 'string'
        ? 'must not be empty'
        : `must be ${issue.minimum} or more${UNITS[issue.origin] ?? ''}`;
    case 'too_big':
      return `must be ${issue.maximum} or less${UNITS[issue.origin] ?? ''}`;
    default:
      return issue.message;
  }
}

const UNITS: Readonly<Record<string, string>> = { array: ' entries', string: ' characters' };

/** Of zod's names of types. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of keys and values',
  record: 'a map of keys and values',
};

function kindOf(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'a whole number' : 'a number';
  return KINDS[typeof value] ?? typeof value;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined),
    value,
  );
}
