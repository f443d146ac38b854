import type { AppliedEdit } from '../edits/apply.ts';
import { inventoryOf } from '../edits/inventory.ts';
import { isVersionShaped } from '../edits/version-shape.ts';
import { gateCounts } from '../gate/counts.ts';
import type { ApplicationReport, GateCounts, GateReport, ObjectChange, ObjectRef } from '../gate/report.ts';
import type { RepositoryTree } from '../port.ts';

/**
 * Why edits point the wrong way, by what the gate says of the repository with them in it; undefined: less is in the way
 * than before, the bump is still the same one, and nothing changes that it did not change by itself. A guard sees the
 * shape of an edit only.
 */
export function wrongDirection(
  before: GateReport,
  after: GateReport,
  edits: readonly AppliedEdit[],
): string | undefined {
  return bumpUndone(before, after) ?? worsening(before, after) ?? changedBesides(before, after, edits);
}

/** Whether as much is in the way with an edit as without it, and as much else differs from what the team had. */
export const isIdle = (without: GateReport, withAll: GateReport): boolean =>
  sum(gateCounts(without)) <= sum(gateCounts(withAll)) && differences(without) <= differences(withAll);

/** How far what is rendered lies from what it was. */
const differences = ({ applications }: GateReport): number =>
  applications.reduce(
    (total, { added, removed, changed }) =>
      total +
      added.length +
      removed.length +
      changed.reduce((sum, { fields, more }) => sum + fields.length + more, 0),
    0,
  );

/** What the merge request changed and the edit sets back; `base` is the tree at the merge base. */
export function takesBack(base: RepositoryTree, edits: readonly AppliedEdit[]): string | undefined {
  const back = edits.find(({ path, key, to }) => {
    const file = inventoryOf(base, path);
    return (
      file.kind === 'Inventory' && file.scalars.some((scalar) => scalar.key === key && scalar.value === to)
    );
  });
  return back && `the edit of ${back.key} takes back what the merge request changes`;
}

/** To put the old version back clears all that the gate found, and is never the answer. */
function bumpUndone(before: GateReport, after: GateReport): string | undefined {
  const now = new Map(after.applications.map(({ name, head }) => [name, JSON.stringify(head)]));
  const moved = before.applications.find(({ name, head }) => now.get(name) !== JSON.stringify(head));
  if (moved !== undefined) return `the edits take back the version of ${moved.name}, or move something else`;
  const known = new Set(before.applications.map(({ name }) => name));
  const other = after.applications.find(({ name }) => !known.has(name));
  return other === undefined ? undefined : `with the edits ${other.name} changes, which it did not before`;
}

function worsening(before: GateReport, after: GateReport): string | undefined {
  const [was, is] = [gateCounts(before), gateCounts(after)];
  const counted = new Map<string, number>(Object.entries(is));
  const grown = Object.entries(was).find(([name, count]) => (counted.get(name) ?? 0) > count);
  if (grown !== undefined) return `with the edits the gate finds more than before (${grown[0]})`;
  return sum(is) < sum(was) ? undefined : 'with the edits the gate finds as much as before';
}

const sum = (counts: GateCounts): number => Object.values(counts).reduce((total, count) => total + count, 0);

/** What the team had is to stay as it was: a change that the version alone did not make is nobody's wish. */
function changedBesides(
  before: GateReport,
  after: GateReport,
  edits: readonly AppliedEdit[],
): string | undefined {
  for (const application of after.applications) {
    const was = before.applications.find(({ name }) => name === application.name);
    if (was === undefined) continue;
    const added = application.added.find((one) => !was.added.some((other) => same(one, other)));
    if (added !== undefined) return `with the edits ${added.kind}/${added.name} is rendered, which is new`;
    const changed = changeBesides(was, application, edits);
    if (changed !== undefined) return changed;
  }
  return undefined;
}

function changeBesides(
  was: ApplicationReport,
  { changed }: ApplicationReport,
  edits: readonly AppliedEdit[],
): string | undefined {
  for (const object of changed) {
    // An object that is back has changed with the chart's version; what it was is not in the report.
    if (was.removed.some((one) => same(one, object))) continue;
    const known = was.changed.find((one) => same(one, object));
    const field = object.fields.find((one) => !isKnown(one, known) && !isEdited(one, edits));
    if (field !== undefined)
      return `with the edits ${object.kind}/${object.name} changes at ${field.path}, which the version alone does not bring about`;
  }
  return undefined;
}

type Field = ObjectChange['fields'][number];

const isKnown = ({ path, to }: Field, known: ObjectChange | undefined): boolean =>
  known?.fields.some((one) => one.path === path && one.to === to) ?? false;

/** The edited value itself, as it is rendered; or a second version that moves with the first one. */
const isEdited = ({ from, to }: Field, edits: readonly AppliedEdit[]): boolean =>
  edits.some(
    (edit) => (to ?? '').includes(edit.to) && ((from ?? '').includes(edit.from) || isVersionShaped(edit.to)),
  );

const same = (one: ObjectRef, other: ObjectRef): boolean =>
  one.apiVersion === other.apiVersion &&
  one.kind === other.kind &&
  one.namespace === other.namespace &&
  one.name === other.name;
