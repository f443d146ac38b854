import { isRecord, valueAt } from '../applications/manifests.ts';
import type { ApplicationReport, Move, ObjectChange, ObjectRef } from '../report.ts';
import { fieldChanges } from './fields.ts';
import type { RenderedObject } from './objects.ts';

export type ObjectDiff = Pick<
  ApplicationReport,
  'added' | 'removed' | 'changed' | 'apiVersionMoves' | 'images'
> & {
  /** Objects that are the same but for their namespace. */
  readonly moves: readonly Move[];
  readonly relabelled: number;
};

/** What became of the objects of one release. Pure; the order is that of the head, then of the base. */
export function diffObjects(base: readonly RenderedObject[], head: readonly RenderedObject[]): ObjectDiff {
  const pairing = paired(base, head);
  const changes = pairing.pairs.map(([from, to]) => change(from, to));
  const isChange = (one: Change): one is Change & { readonly change: ObjectChange } =>
    one.change !== undefined;
  return {
    added: pairing.head.map(({ ref }) => ref),
    removed: pairing.base.map(({ ref }) => ref),
    changed: changes.filter(isChange).map((one) => one.change),
    apiVersionMoves: pairing.pairs.flatMap(([from, to]) =>
      from.ref.apiVersion === to.ref.apiVersion ? [] : [{ ...to.ref, from: from.ref.apiVersion }],
    ),
    images: changedImages(pairing.pairs),
    moves: pairing.pairs.flatMap(([from, to]) => {
      const [one, other] = [from.ref.namespace, to.ref.namespace];
      if (one === other) return [];
      const own = "(the release's own)";
      return [{ what: 'Namespace' as const, from: one ?? own, to: other ?? own, object: to.ref }];
    }),
    relabelled: changes.filter((one) => one.relabelled).length,
  };
}

/** `noise`: what two renderings of the very same chart and values differ in. */
export function withoutNoise(diff: ObjectDiff, noise: ObjectDiff): ObjectDiff {
  const keyOf = ({ kind, namespace, name }: ObjectRef): string => JSON.stringify([kind, namespace, name]);
  const noisy = new Map(
    noise.changed.map((one) => [keyOf(one), new Set(one.fields.map(({ path }) => path))]),
  );
  return {
    ...diff,
    changed: diff.changed.flatMap((one) => {
      const fields = one.fields.filter(({ path }) => noisy.get(keyOf(one))?.has(path) !== true);
      return fields.length === 0 && one.more === 0 ? [] : [{ ...one, fields }];
    }),
  };
}

interface Pairing {
  readonly pairs: readonly (readonly [RenderedObject, RenderedObject])[];
  readonly base: readonly RenderedObject[];
  readonly head: readonly RenderedObject[];
}

/** From the closest likeness to the loosest: who is left alone was added or removed. */
const LIKENESS: readonly ((ref: ObjectRef) => string)[] = [
  ({ apiVersion, kind, namespace, name }) => JSON.stringify([apiVersion, kind, namespace, name]),
  ({ kind, namespace, name }) => JSON.stringify([kind, namespace, name]),
  ({ apiVersion, kind, name }) => JSON.stringify([apiVersion, kind, name]),
  ({ kind, name }) => JSON.stringify([kind, name]),
];

function paired(base: readonly RenderedObject[], head: readonly RenderedObject[]): Pairing {
  let pairing: Pairing = { pairs: [], base, head };
  for (const keyOf of LIKENESS) {
    const left = new Map<string, RenderedObject[]>();
    for (const object of pairing.base) {
      const key = keyOf(object.ref);
      const alike = left.get(key);
      if (alike === undefined) left.set(key, [object]);
      else alike.push(object);
    }
    const pairs: (readonly [RenderedObject, RenderedObject])[] = [];
    const alone = pairing.head.filter((object) => {
      const partner = left.get(keyOf(object.ref))?.shift();
      if (partner === undefined) return true;
      pairs.push([partner, object]);
      return false;
    });
    const matched = new Set(pairs.map(([one]) => one));
    pairing = {
      pairs: [...pairing.pairs, ...pairs],
      base: pairing.base.filter((object) => !matched.has(object)),
      head: alone,
    };
  }
  return pairing;
}

interface Change {
  readonly change?: ObjectChange;
  readonly relabelled: boolean;
}

/** Labels that name the chart's version, and sums of other objects, follow from what is told elsewhere. */
const FOLLOWING =
  /(\.|^)(labels\["(helm\.sh\/chart|app\.kubernetes\.io\/version)"\]|annotations(\["checksum\/|\.checksum\/).*)$/;
/** Told by the lists of moves. */
const IDENTITY = /^(apiVersion|metadata\.namespace)$/;

function change(from: RenderedObject, to: RenderedObject): Change {
  let relabelled = false;
  const ignored = (path: string): boolean => {
    const following = FOLLOWING.test(path);
    relabelled ||= following;
    return following || IDENTITY.test(path);
  };
  // What a Secret holds is nobody's to read in a report.
  const hidden = (path: string): boolean =>
    to.ref.kind === 'Secret' && /^(data|stringData)(\.|\[|$)/.test(path);
  const { fields, more } = fieldChanges(from.value, to.value, { ignored, hidden });
  if (fields.length === 0) return { relabelled };
  return { change: { ...to.ref, fields, more }, relabelled: false };
}

function changedImages(
  pairs: readonly (readonly [RenderedObject, RenderedObject])[],
): readonly { readonly from: string; readonly to: string }[] {
  const moved = new Map<string, { readonly from: string; readonly to: string }>();
  for (const [from, to] of pairs) {
    const before = imagesOf(from.value);
    for (const [container, image] of imagesOf(to.value)) {
      const earlier = before.get(container);
      if (earlier !== undefined && earlier !== image)
        moved.set(JSON.stringify([earlier, image]), { from: earlier, to: image });
    }
  }
  return [...moved.values()];
}

/** Images by container, of a pod or of whatever has a template of one. */
function imagesOf(value: unknown): ReadonlyMap<string, string> {
  const images = new Map<string, string>();
  for (const at of [
    ['spec'],
    ['spec', 'template', 'spec'],
    ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
  ]) {
    for (const list of ['initContainers', 'containers']) {
      const containers = valueAt(value, [...at, list]);
      if (!Array.isArray(containers)) continue;
      for (const container of containers)
        if (isRecord(container) && typeof container['image'] === 'string')
          images.set(`${list}/${String(container['name'])}`, container['image']);
    }
  }
  return images;
}
