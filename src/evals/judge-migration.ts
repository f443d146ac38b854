import { withChanges } from '../delivery/overlay-tree.ts';
import { readDocument, readDocuments } from '../delivery/structural/document.ts';
import { vocabularyAt } from '../delivery/structural/provenance.ts';
import type { Schema } from '../delivery/structural/schema.ts';
import { dotted, equals, jsonValue, leavesOf, type Value, valueAt } from '../delivery/structural/value.ts';
import type { DeliveryCase } from './delivery-case.ts';
import type { DeliveryRun } from './run-delivery.ts';
import type { Score } from './score.ts';

/** Restructure and values: what stands in the repository afterwards against what should. */
export function judgeMigration(one: DeliveryCase, run: DeliveryRun): Omit<Score, 'full'> {
  const { outcome } = run.delivery;
  const wanted = one.want.document;
  if (outcome.kind !== 'Push')
    return {
      unsafe: [],
      classified: wanted === undefined,
      got: outcome.kind === 'Escalate' ? outcome.reason : outcome.kind,
      faults: wanted === undefined ? [] : reasonsOf(outcome),
    };
  const got = after(one, run);
  if (wanted === undefined)
    return {
      unsafe: ['a document was written where every one is wrong'],
      classified: false,
      got: 'written',
      faults: [],
    };
  const right = plain(wanted);
  if (equals(got, right)) return { unsafe: [], classified: true, got: 'as wanted', faults: [] };
  const noise = surplus(got, right, schemaOf(one));
  if (noise !== undefined)
    return {
      unsafe: [],
      classified: true,
      got: 'with defaults',
      faults: noise.map((key) => `${key} is set, which only repeats a default`),
    };
  return {
    unsafe: [`what was written is not what it said before: ${differences(got, right).join(', ')}`],
    classified: true,
    got: 'written wrongly',
    faults: [],
  };
}

function after(one: DeliveryCase, { delivery, repository }: DeliveryRun): Value | undefined {
  const files = delivery.outcome.kind === 'Push' ? delivery.outcome.files : [];
  const tree = withChanges(repository.head, files);
  const entry = tree.entry(one.path === 'values' ? repository.path : (one.document ?? ''));
  if (entry?.kind !== 'File') return undefined;
  const [first] = readDocuments(new TextDecoder().decode(entry.bytes));
  const document = first?.kind === 'Read' ? first.value : undefined;
  return one.path === 'values' ? valueAt(document, repository.valuesAt) : document;
}

function plain(text: string): Value | undefined {
  const reading = readDocument(text);
  return reading.kind === 'Read' ? reading.value : undefined;
}

/** Keys that are there besides, when nothing else differs and each says what unset means. */
function surplus(
  got: Value | undefined,
  right: Value | undefined,
  schema: Schema | undefined,
): readonly string[] | undefined {
  if (got === undefined || right === undefined || schema === undefined) return undefined;
  if (!leavesOf(right).every(({ path, value }) => equals(valueAt(got, path), value))) return undefined;
  const more = leavesOf(got).filter(({ path }) => valueAt(right, path) === undefined);
  const noisy = more.every(({ path, value }) =>
    vocabularyAt(schema, path).some((word) => equals(word, value)),
  );
  return noisy && more.length > 0 ? more.map(({ path }) => dotted(path)) : undefined;
}

function schemaOf({ path, after: chart, before }: DeliveryCase): Schema | undefined {
  if (path === 'values') return chart.schema === undefined ? undefined : jsonValue(chart.schema);
  const served = chart.crds[0];
  const known = new Set(Object.keys(before.crds[0]?.versions ?? {}));
  const [, schema] = Object.entries(served?.versions ?? {}).find(([version]) => !known.has(version)) ?? [];
  return schema === undefined ? undefined : jsonValue(schema);
}

function differences(got: Value | undefined, right: Value | undefined): readonly string[] {
  const [one, other] = [leavesOf(got ?? {}), leavesOf(right ?? {})];
  return [
    ...other.filter(({ path, value }) => !equals(valueAt(got, path), value)),
    ...one.filter(({ path }) => valueAt(right, path) === undefined),
  ].map(({ path }) => dotted(path));
}

const reasonsOf = (outcome: DeliveryRun['delivery']['outcome']): readonly string[] =>
  outcome.kind === 'Escalate' ? outcome.reasons : [outcome.kind];
