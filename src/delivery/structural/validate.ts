import { check, type Finding } from './check.ts';
import { inventedLeaves, isDisplaced, lostLeaves, respelledLeaves } from './provenance.ts';
import type { Schema, SchemaKind } from './schema.ts';
import {
  childOf,
  dotted,
  equals,
  isMapping,
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
  ]);
}

export interface ValuesCase {
  readonly original: Value;
  readonly proposed: Value;
  readonly schema: Schema;
  /** The new chart's own values. */
  readonly defaults: Value;
}

/** Whether migrated values fit, keep all that the new chart still takes, and hold nothing that was made up. */
export function validateValues({ original, proposed, schema, defaults }: ValuesCase): Validation {
  const options = { kind: 'Values', defaults } as const;
  const findings = check(original, schema, options);
  return verdictOn(original, proposed, [
    ...survivalFaults(original, proposed, findings),
    ...schemaFaults(check(proposed, schema, options)),
    ...inventions(inventedLeaves(original, proposed, schema, findings)),
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

/** A setting that the migration is not about: a rename that lands on an occupied key shows here as well. */
function survivalFaults(original: Value, proposed: Value, findings: readonly Finding[]): readonly string[] {
  return leavesOf(original)
    .filter(({ path }) => !isDisplaced(path, findings))
    .filter(({ path, value }) => !equals(valueAt(proposed, path), value))
    .map(({ path, value }) => `${dotted(path)} is still taken by the chart and has to stay ${shown(value)}`);
}
