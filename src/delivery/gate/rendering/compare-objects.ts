import type { RepositoryTree } from '../../port.ts';
import { findConsumers } from '../consumers.ts';
import type { ApplicationReport } from '../report.ts';
import { diffObjects, type ObjectDiff, withoutNoise } from './diff.ts';
import { type Dropped, droppedVersions } from './dropped-versions.ts';
import { documentsOf, parsedObjects, type RenderedObject, unequal } from './objects.ts';

export type Rendering =
  | {
      readonly kind: 'Rendered';
      readonly manifests: string;
      readonly namespace: string;
      readonly again?: string;
    }
  /** The application is not there at this commit. */
  | { readonly kind: 'Nothing' }
  | { readonly kind: 'Failed' };

/** CustomResourceDefinitions that drop versions. */
export interface Definitions {
  readonly base: readonly RenderedObject['value'][];
  readonly head: readonly RenderedObject['value'][];
}

export type ComparedObjects = Pick<
  ApplicationReport,
  'targeting' | 'added' | 'removed' | 'changed' | 'apiVersionMoves' | 'images' | 'droppedVersions'
> & {
  readonly relabelled?: number;
  readonly definitions: Definitions;
  readonly gaps: readonly string[];
};

/** Manifests that are parsed; equal ones are left out before. */
const MAX_PARSED_CHARACTERS = 12 * 1024 * 1024;
const MAX_PARSED_DOCUMENTS = 20_000;

const NOTHING: ComparedObjects = {
  targeting: [],
  added: [],
  removed: [],
  changed: [],
  apiVersionMoves: [],
  images: [],
  droppedVersions: [],
  definitions: { base: [], head: [] },
  gaps: [],
};

/** The objects of one application at both commits. Against a side that failed everything would be new, or gone. */
export async function comparedObjects(
  name: string,
  base: Rendering,
  head: Rendering,
  headTree: RepositoryTree,
): Promise<ComparedObjects> {
  if (base.kind === 'Failed' || head.kind === 'Failed') return NOTHING;
  const documents = unequal(documentsIn(base), documentsIn(head));
  const parsed = [...documents.base, ...documents.head];
  if (charactersOf(parsed) > MAX_PARSED_CHARACTERS || parsed.length > MAX_PARSED_DOCUMENTS)
    return { ...NOTHING, gaps: [`${name}: more manifests changed than are compared.`] };
  const from = await parsedObjects(documents.base, namespaceOf(base));
  const to = await parsedObjects(documents.head, namespaceOf(head));
  const { moves, relabelled, ...diff } = await settled(head, diffObjects(from.objects, to.objects));
  const dropped = droppedVersions(from.objects, to.objects);
  const scan = await findConsumers(headTree, dropped);
  const gaps = [...scan.unscanned];
  if (to.unreadable > 0) gaps.push(`${name}: ${to.unreadable} rendered documents are no YAML, or too large.`);
  return {
    ...diff,
    targeting: moves,
    droppedVersions: scan.versions,
    definitions: { base: definitionsOf(from.objects, dropped), head: definitionsOf(to.objects, dropped) },
    ...(documents.relabelled + relabelled > 0 && { relabelled: documents.relabelled + relabelled }),
    gaps,
  };
}

/** Without what is another one each time that it is rendered. */
async function settled(head: Rendering, diff: ObjectDiff): Promise<ObjectDiff> {
  if (head.kind !== 'Rendered' || head.again === undefined) return diff;
  const { base: once, head: twice } = unequal(documentsOf(head.manifests), documentsOf(head.again));
  const noise = diffObjects(
    (await parsedObjects(once, head.namespace)).objects,
    (await parsedObjects(twice, head.namespace)).objects,
  );
  return withoutNoise(diff, noise);
}

const documentsIn = (side: Rendering): readonly string[] =>
  side.kind === 'Rendered' ? documentsOf(side.manifests) : [];

const namespaceOf = (side: Rendering): string => (side.kind === 'Rendered' ? side.namespace : '');

const charactersOf = (documents: readonly string[]): number =>
  documents.reduce((sum, { length }) => sum + length, 0);

const definitionsOf = (objects: readonly RenderedObject[], dropped: readonly Dropped[]) =>
  objects
    .filter(
      ({ ref }) => ref.kind === 'CustomResourceDefinition' && dropped.some(({ crd }) => crd === ref.name),
    )
    .map(({ value }) => value);
