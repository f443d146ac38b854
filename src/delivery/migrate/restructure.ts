import { pathRefusal } from '../edits/policy.ts';
import { resolveFile } from '../edits/safe-path.ts';
import { decodeYaml, encodeYaml } from '../edits/yaml/text.ts';
import type { DroppedVersion } from '../gate/report.ts';
import type { FileChange, RepositoryTree } from '../port.ts';
import { swapApiVersions, type VersionSwap } from '../structural/api-version-swap.ts';
import { check } from '../structural/check.ts';
import { readDocuments, writeDocument } from '../structural/document.ts';
import type { Schema } from '../structural/schema.ts';
import { validateRestructure } from '../structural/validate.ts';
import { childOf, dotted, isMapping, type Mapping } from '../structural/value.ts';
import { readMigration } from './answer.ts';
import type { AskFor, LostValue, RestructureQuestion } from './questions.ts';
import { writeDocumentOver } from './write-document.ts';

export interface RestructureRequest {
  /** Head of the merge request. */
  readonly tree: RepositoryTree;
  readonly dropped: readonly DroppedVersion[];
  /** Of the configuration. The merge request need not have touched a file: the gate named it. */
  readonly policy: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  /** Schema of a kind at a version, as the old and the new chart bring it. */
  schemasOf(kind: { readonly group: string; readonly kind: string; readonly version: string }): {
    readonly before: Schema | undefined;
    readonly after: Schema | undefined;
  };
  /** Documents that a model may reshape; 0: none is asked. */
  readonly maxDocuments: number;
}

export type RestructureOutcome =
  | {
      readonly kind: 'Migrated';
      readonly files: readonly FileChange[];
      readonly documents: readonly RestructuredDocument[];
      readonly lost: readonly LostValue[];
    }
  /** Nothing of the pass is to be pushed: a swap alone turns the gate green over a broken document. */
  | { readonly kind: 'Refused'; readonly reasons: readonly string[] };

export interface RestructuredDocument {
  readonly path: string;
  /** From 1, the lines whose apiVersion was swapped. */
  readonly lines: readonly number[];
  /** `Reshaped` by the model; `Fits` as it is; `NotJudged`: no schema is known, or it stands inside another file. */
  readonly kind: 'Reshaped' | 'Fits' | 'NotJudged';
  readonly object: string;
  readonly notes?: string;
  readonly respelled: readonly { readonly path: string; readonly from: string; readonly to: string }[];
}

/** Moves manifests off API versions that the new chart drops: the version first, then what no longer fits. */
export async function restructure(
  request: RestructureRequest,
  ask: AskFor<RestructureQuestion>,
  signal?: AbortSignal,
): Promise<RestructureOutcome> {
  const reasons: string[] = [];
  const files: FileChange[] = [];
  const documents: RestructuredDocument[] = [];
  const lost: LostValue[] = [];
  const budget = { documents: request.maxDocuments };
  const swaps = swapsOf(request.dropped, reasons);
  for (const path of consumersOf(request.dropped)) {
    const swapped = swapFile(request, path, swaps);
    if (typeof swapped === 'string') {
      reasons.push(`${path} ${swapped}`);
      continue;
    }
    const reshaped = await reshapeFile({ request, path, swaps, ask, budget, signal }, swapped);
    reasons.push(...reshaped.reasons.map((reason) => `${path}: ${reason}`));
    documents.push(...reshaped.documents);
    lost.push(...reshaped.lost);
    files.push({ path, bytes: encodeYaml(reshaped.text) });
  }
  if (files.length === 0 && reasons.length === 0) reasons.push('no manifest declares what goes away');
  return reasons.length > 0 ? { kind: 'Refused', reasons } : { kind: 'Migrated', files, documents, lost };
}

function swapsOf(dropped: readonly DroppedVersion[], reasons: string[]): readonly VersionSwap[] {
  return dropped.flatMap(({ target, crd, group, kind, versions, consumers }) => {
    if (target !== undefined) return [{ group, kind, versions, target }];
    if (consumers.length > 0) reasons.push(`${crd} is gone altogether, and nothing takes its place`);
    return [];
  });
}

const consumersOf = (dropped: readonly DroppedVersion[]): readonly string[] =>
  [
    ...new Set(
      dropped
        .filter(({ target }) => target !== undefined)
        .flatMap(({ consumers }) => consumers.map(({ path }) => path)),
    ),
  ].toSorted();

interface Swapped {
  readonly before: string;
  readonly text: string;
  readonly lines: readonly number[];
}

/** Or why not. */
function swapFile(
  { tree, policy }: RestructureRequest,
  path: string,
  swaps: readonly VersionSwap[],
): Swapped | string {
  const refusal = pathRefusal({ ...policy, scope: [path], evidence: '' }, path);
  if (refusal !== undefined) return `may not be edited: ${refusal.message}`;
  if (isTemplate(tree, path)) return 'is a template of a chart, which only its author can change';
  const file = resolveFile(tree, path);
  if (file.kind === 'Refused') return file.message;
  const decoded = decodeYaml(file.bytes);
  if (decoded.kind === 'Unreadable') return decoded.reason;
  const outcome = swapApiVersions(decoded.text, swaps);
  if (outcome.kind === 'Refused') return outcome.reason;
  if (outcome.kind === 'Unchanged') return 'was said to declare what goes away, and does not';
  return { before: decoded.text, text: outcome.text, lines: outcome.lines };
}

const isTemplate = (tree: RepositoryTree, path: string): boolean => {
  const at = path.lastIndexOf('templates/');
  return at >= 0 && tree.entry(`${path.slice(0, at)}Chart.yaml`) !== undefined;
};

interface Reshaping {
  readonly request: RestructureRequest;
  readonly path: string;
  readonly swaps: readonly VersionSwap[];
  readonly ask: AskFor<RestructureQuestion>;
  readonly budget: { documents: number };
  readonly signal: AbortSignal | undefined;
}

async function reshapeFile(context: Reshaping, swapped: Swapped) {
  const reasons: string[] = [];
  const documents: RestructuredDocument[] = [];
  const lost: LostValue[] = [];
  let text = swapped.text;
  const before = readDocuments(swapped.before);
  let embedded = swapped.lines.length;
  for (const [index, reading] of readDocuments(swapped.text).entries()) {
    const was = before[index];
    if (reading.kind === 'Unreadable') {
      reasons.push(`document ${index + 1} ${reading.reason}, so that nobody can tell whether it fits`);
      continue;
    }
    if (was?.kind !== 'Read' || childOf(was.value, 'apiVersion') === childOf(reading.value, 'apiVersion'))
      continue;
    if (!isMapping(reading.value)) continue;
    embedded -= 1;
    const outcome = await reshapeDocument(context, text, index, reading.value);
    if (outcome.kind === 'Refused') {
      reasons.push(...outcome.reasons);
      continue;
    }
    text = outcome.text;
    documents.push({ ...outcome.document, path: context.path, lines: swapped.lines });
    lost.push(...outcome.lost);
  }
  if (embedded > 0)
    documents.push({
      path: context.path,
      lines: swapped.lines,
      kind: 'NotJudged',
      object: `${embedded} inside other documents`,
      respelled: [],
    });
  return { reasons, documents, lost, text };
}

type Reshaped =
  | {
      readonly kind: 'Done';
      readonly text: string;
      readonly document: Omit<RestructuredDocument, 'path' | 'lines'>;
      readonly lost: readonly LostValue[];
    }
  | { readonly kind: 'Refused'; readonly reasons: readonly string[] };

async function reshapeDocument(
  { request, path, swaps, ask, budget, signal }: Reshaping,
  text: string,
  index: number,
  original: Mapping,
): Promise<Reshaped> {
  const object = nameOf(original);
  const unchanged = (kind: 'Fits' | 'NotJudged'): Reshaped => ({
    kind: 'Done',
    text,
    document: { kind, object, respelled: [] },
    lost: [],
  });
  const swap = swaps.find(
    ({ kind, group, target }) => kind === original['kind'] && original['apiVersion'] === `${group}/${target}`,
  );
  if (swap === undefined) return unchanged('NotJudged');
  const { after, before } = schemasOf(request, swap);
  if (after === undefined) return unchanged('NotJudged');
  const findings = check(original, after, { kind: 'CustomResource' });
  if (findings.length === 0) return unchanged('Fits');
  if (budget.documents <= 0) {
    const what = findings.map((finding) => `${dotted(finding.path)} ${finding.detail}`).join('; ');
    return refused(`${object} no longer fits (${what}), and no more documents may be reshaped`);
  }
  budget.documents -= 1;
  const question = { path, document: writeDocument(original), findings, oldSchema: before, newSchema: after };
  const answer = readMigration(await ask(question, signal));
  if (answer.kind === 'Refused') return refused(`${object}: ${answer.reason}`);
  const targetApiVersion = `${swap.group}/${swap.target}`;
  const validation = validateRestructure({
    original,
    proposed: answer.document,
    targetApiVersion,
    schema: after,
  });
  if (validation.kind === 'Refused')
    return refused(...validation.reasons.map((reason) => `${object}: the proposal is refused: ${reason}`));
  const written = writeDocumentOver(text, index, original, answer.document);
  if (written.kind === 'Refused') return refused(`${object} ${written.reason}`);
  return {
    kind: 'Done',
    text: written.text,
    document: {
      kind: 'Reshaped',
      object,
      notes: answer.notes,
      respelled: validation.respelled.map((one) => ({ ...one, path: dotted(one.path) })),
    },
    lost: validation.lost.map((leaf) => ({ where: path, key: dotted(leaf.path), value: leaf.value })),
  };
}

function schemasOf(request: RestructureRequest, { group, kind, versions, target }: VersionSwap) {
  const { after } = request.schemasOf({ group, kind, version: target });
  const before = versions.map((version) => request.schemasOf({ group, kind, version }).before);
  return { after, before: before.find((schema) => schema !== undefined) };
}

function nameOf(document: Mapping): string {
  const name = childOf(childOf(document, 'metadata'), 'name');
  return `${String(document['kind'])}/${typeof name === 'string' ? name : 'without a name'}`;
}

const refused = (...reasons: readonly string[]): Reshaped => ({ kind: 'Refused', reasons });
