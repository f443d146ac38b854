import { check, type Finding, fits } from './check.ts';
import { propertiesOf, type Schema, schemaAt, typesOf } from './schema.ts';
import { childOf, dotted, isList, isMapping, leavesOf, type Path, type Value, valueAt } from './value.ts';

/** Free keys beside a key that the new schema refuses: where its value may have gone. */
export interface Vacancy {
  readonly refused: Path;
  /** Sorted; undefined: not computed, since the key stands below a list. */
  readonly free: readonly { readonly key: string; readonly type: string }[] | undefined;
}

const MAX_SHOWN = 8;
/** Helm's own: every chart has it, and none reads a setting of another name from there. */
const GLOBAL = 'global';

/** One for each refused key, in the order of the findings. */
export function vacancies(
  values: Value,
  schema: Schema,
  findings: readonly Finding[] = check(values, schema, { kind: 'Values' }),
): readonly Vacancy[] {
  return findings
    .filter(({ kind }) => kind === 'Rejected')
    .map(({ path }) => ({ refused: path, free: freeBeside(values, schema, path) }));
}

/** One line for each; what is not free says as much as what is. */
export function vacancyLines(found: readonly Vacancy[]): string {
  return found.map((vacancy) => `- ${lineOf(vacancy)}\n`).join('');
}

function lineOf({ refused, free }: Vacancy): string {
  if (free === undefined) return `${dotted(refused)} -> beside it: not computed`;
  if (free.length === 0) return `${dotted(refused)} -> nothing free beside it`;
  const shown = free.slice(0, MAX_SHOWN).map(({ key, type }) => `${key} (${type})`);
  const more = free.length > MAX_SHOWN ? [`and ${free.length - MAX_SHOWN} more`] : [];
  return `${dotted(refused)} -> ${[...shown, ...more].join(', ')}`;
}

function freeBeside(values: Value, schema: Schema, refused: Path): Vacancy['free'] {
  const parent = refused.slice(0, -1);
  if (parent.some((_, depth) => isList(valueAt(values, parent.slice(0, depth + 1))))) return undefined;
  const section = valueAt(values, parent);
  const value = valueAt(values, refused);
  return Object.entries(propertiesOf(schemaAt(schema, parent)) ?? {})
    .filter(([key]) => isUnset(childOf(section, key)) && !(parent.length === 0 && key === GLOBAL))
    .filter(([, of]) => value !== undefined && couldHold(of, value))
    .map(([key, of]) => ({ key, type: typesOf(of).join(' or ') || 'any' }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** Sections in which nothing is set are free as well. */
const isUnset = (value: Value | undefined): boolean =>
  value === undefined || (isMapping(value) && leavesOf(value).every(({ value: leaf }) => isMapping(leaf)));

/** A section may take in a single value somewhere below; a list is only where a list goes. */
function couldHold(schema: Schema, value: Value): boolean {
  const types = typesOf(schema);
  return types.length === 0 || types.includes('object') || types.some((type) => fits(value, type));
}
