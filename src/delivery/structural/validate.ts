import { check, type Finding } from './check.ts';
import { inventedLeaves, isDisplaced, lostLeaves, respelledLeaves } from './provenance.ts';
import { enumOf, type Schema, type SchemaKind, schemaAt } from './schema.ts';
import { vacancies } from './vacancies.ts';
import {
  childOf,
  dotted,
  equals,
  isMapping,
  isWithin,
  type Leaf,
  leavesOf,
  shown,
  type Value,
  valueAt,
} from './value.ts';

export type Validation =
  | {
      readonly kind: 'Accepted';
      /** Values of the original that did not come across: to be named to people, all of them. */
      readonly lost: readonly Leaf[];
      readonly respelled: ReturnType<typeof respelledLeaves>;
    }
  /** Every reason, each one sentence. */
  | { readonly kind: 'Refused'; readonly reasons: readonly string[] };

export interface RestructureCase {
  /** With the new apiVersion in it already. */
  readonly original: Value;
  readonly proposed: Value;
  readonly targetApiVersion: string;
  /** Of that version. */
  readonly schema: Schema;
}

/** Whether a reshaped custom resource is the same object, fits, and holds nothing that was made up. */
export function validateRestructure({
  original,
  proposed,
  targetApiVersion,
  schema,
}: RestructureCase): Validation {
  const findings = check(original, schema, CUSTOM_RESOURCE);
  return verdictOn(original, proposed, [
    ...identityFaults(original, proposed, targetApiVersion),
    ...schemaFaults(check(proposed, schema, CUSTOM_RESOURCE)),
    ...inventions(
      inventedLeaves(original, proposed, schema, findings).filter(({ path }) => path[0] !== 'apiVersion'),
    ),
    ...typeDropFaults(original, proposed, findings),
  ]);
}

export interface ValuesCase {
  readonly original: Value;
  readonly proposed: Value;
  readonly schema: Schema;
  /** The new chart's own values. */
  readonly defaults: Value;
  /** Default true: a value with one free key beside it is not dropped. Evals look at what comes without. */
  readonly guardDrops?: boolean;
}

/** Whether migrated values fit, keep all that the new chart still takes, and hold nothing that was made up. */
export function validateValues({
  original,
  proposed,
  schema,
  defaults,
  guardDrops = true,
}: ValuesCase): Validation {
  const options = { kind: 'Values', defaults } as const;
  const findings = check(original, schema, options);
  return verdictOn(original, proposed, [
    ...survivalFaults(original, proposed, findings),
    ...schemaFaults(check(proposed, schema, options)),
    ...inventions(inventedLeaves(original, proposed, schema, findings)),
    ...typeDropFaults(original, proposed, findings),
    ...(guardDrops ? nameDropFaults(original, proposed, schema, findings) : []),
  ]);
}

const CUSTOM_RESOURCE: { readonly kind: SchemaKind } = { kind: 'CustomResource' };

function verdictOn(original: Value, proposed: Value, reasons: readonly string[]): Validation {
  if (!isMapping(proposed)) return { kind: 'Refused', reasons: ['the answer is no mapping'] };
  if (reasons.length > 0) return { kind: 'Refused', reasons };
  return {
    kind: 'Accepted',
    lost: lostLeaves(original, proposed),
    respelled: respelledLeaves(original, proposed),
  };
}

function identityFaults(original: Value, proposed: Value, targetApiVersion: string): readonly string[] {
  const faults = IDENTITY.filter((path) => {
    const [before, after] = [valueAt(original, path), valueAt(proposed, path)];
    return !(before === undefined && after === undefined) && !equals(before, after);
  }).map((path) => `${dotted(path)} may not change`);
  const apiVersion = childOf(proposed, 'apiVersion');
  return apiVersion === targetApiVersion ? faults : [`apiVersion has to be ${targetApiVersion}`, ...faults];
}

const IDENTITY = [
  ['kind'],
  ['metadata', 'name'],
  ['metadata', 'namespace'],
  ['metadata', 'generateName'],
] as const;

const schemaFaults = (findings: readonly Finding[]): readonly string[] =>
  findings.map(({ path, detail }) => `${dotted(path)} ${detail}`);

const inventions = (leaves: readonly Leaf[]): readonly string[] =>
  leaves.map(
    ({ path, value }) =>
      `${dotted(path)} has ${shown(value)}, which neither the original nor the new schema has for it`,
  );

/** A value of which only the type is wrong is said in another type, not left out. */
const typeDropFaults = (original: Value, proposed: Value, findings: readonly Finding[]): readonly string[] =>
  lostLeaves(original, proposed)
    .filter(({ path }) => findings.some((one) => one.kind === 'WrongType' && isWithin(path, one.path)))
    .filter(({ path }) => valueAt(proposed, path) === undefined)
    .map(({ path }) => `${dotted(path)} is dropped, and only its type is wrong`);

/**
 * Lever 7 in code: a value that is nowhere although exactly one free key beside it could hold it. Whether that key is
 * another name of it is a question for people; a renamed setting that is dropped is seen by nobody.
 */
function nameDropFaults(
  original: Value,
  proposed: Value,
  schema: Schema,
  findings: readonly Finding[],
): readonly string[] {
  const free = new Map(
    vacancies(original, schema, findings).map((one) => [dotted(one.refused), one.free ?? []]),
  );
  return lostLeaves(original, proposed).flatMap(({ path, value }) => {
    const at = dotted(path);
    const [place, ...others] = (free.get(at) ?? []).filter(({ key, type }) => {
      const members = enumOf(schemaAt(schema, [...path.slice(0, -1), key]));
      return type !== 'object' && (members === undefined || members.some((one) => equals(one, value)));
    });
    if (place === undefined || others.length > 0) return [];
    return [
      `${at} is dropped, and ${place.key} beside it is free: whether it is the same, a person has to say`,
    ];
  });
}

/** A setting that the migration is not about: a rename that lands on an occupied key shows here as well. */
function survivalFaults(original: Value, proposed: Value, findings: readonly Finding[]): readonly string[] {
  return leavesOf(original)
    .filter(({ path }) => !isDisplaced(path, findings))
    .filter(({ path, value }) => !equals(valueAt(proposed, path), value))
    .map(({ path, value }) => `${dotted(path)} is still taken by the chart and has to stay ${shown(value)}`);
}
