import { pathRefusal } from '../edits/policy.ts';
import { resolveFile } from '../edits/safe-path.ts';
import { decodeYaml, encodeYaml } from '../edits/yaml/text.ts';
import { merged } from '../gate/values/merge.ts';
import { ALL_LEVERS, type Levers } from '../levers.ts';
import type { FileChange, Helm, HelmRequest, RepositoryTree } from '../port.ts';
import { check } from '../structural/check.ts';
import { readDocument, writeDocument } from '../structural/document.ts';
import { locate } from '../structural/locate.ts';
import { needsAnAuthor } from '../structural/needs-an-author.ts';
import { type Operation, planOf } from '../structural/plan.ts';
import type { Schema } from '../structural/schema.ts';
import { vacancies } from '../structural/vacancies.ts';
import { validateValues } from '../structural/validate.ts';
import { dotted, isMapping, type Mapping } from '../structural/value.ts';
import { readMigration } from './answer.ts';
import type { AskFor, LostValue, ValuesQuestion } from './questions.ts';
import { writeOver } from './write-document.ts';

/** One application whose new chart refuses the values that the repository sets. */
export interface ValuesApplication {
  /** As in the gate's report. */
  readonly name: string;
  readonly chart: string;
  readonly from: string;
  readonly to: string;
  /** Text of `values.schema.json`, of both charts. */
  readonly oldSchema: string | undefined;
  readonly newSchema: string | undefined;
  /** Text of the new chart's own `values.yaml`. */
  readonly newDefaults: string;
  /** With the new chart and the values as they are, the last one wins. */
  readonly request: HelmRequest;
  /** Files that may set the values: those that the gate names, and those of the merge request. */
  readonly candidates: readonly string[];
}

export interface ValuesRequest {
  /** Head of the merge request. */
  readonly tree: RepositoryTree;
  readonly policy: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly applications: readonly ValuesApplication[];
}

export type ValuesOutcome =
  | {
      readonly kind: 'Migrated';
      readonly files: readonly FileChange[];
      readonly applications: readonly MigratedValues[];
      /** Every value that did not come across. */
      readonly lost: readonly LostValue[];
    }
  /** One application's refusal is that of the whole pass. */
  | { readonly kind: 'Refused'; readonly reasons: readonly string[] };

export interface MigratedValues {
  readonly name: string;
  readonly path: string;
  readonly operations: readonly Operation[];
  readonly notes: string;
}

/** Moves values to what the new chart takes. The model proposes a document; what is written is computed from it. */
export async function migrateValues(
  { tree, policy, applications }: ValuesRequest,
  helm: Helm,
  ask: AskFor<ValuesQuestion>,
  signal?: AbortSignal,
  levers: Levers = ALL_LEVERS,
): Promise<ValuesOutcome> {
  const staged = new Map<string, string>();
  const migrated: MigratedValues[] = [];
  const lost: LostValue[] = [];
  const reasons: string[] = [];
  for (const application of applications) {
    const proposal = await propose(application, helm, ask, signal, levers);
    if (proposal.kind === 'Refused') {
      reasons.push(...proposal.reasons.map((reason) => `${application.name}: ${reason}`));
      continue;
    }
    const written = place(tree, policy, staged, application, proposal);
    if (typeof written === 'string') {
      reasons.push(`${application.name}: ${written}`);
      continue;
    }
    staged.set(written.path, written.text);
    migrated.push({
      name: application.name,
      path: written.path,
      operations: written.operations,
      notes: proposal.notes,
    });
    lost.push(...proposal.lost);
  }
  if (reasons.length > 0 || migrated.length === 0)
    return { kind: 'Refused', reasons: reasons.length > 0 ? reasons : ['no application was named'] };
  const files = [...staged].map(([path, text]) => ({ path, bytes: encodeYaml(text) }));
  return { kind: 'Migrated', files, applications: migrated, lost };
}

type Proposal =
  | {
      readonly kind: 'Proposed';
      readonly original: Mapping;
      readonly proposed: Mapping;
      readonly notes: string;
      readonly lost: readonly LostValue[];
    }
  | { readonly kind: 'Refused'; readonly reasons: readonly string[] };

async function propose(
  application: ValuesApplication,
  helm: Helm,
  ask: AskFor<ValuesQuestion>,
  signal: AbortSignal | undefined,
  levers: Levers,
): Promise<Proposal> {
  const newSchema = schemaOf(application.newSchema);
  if (newSchema === undefined) return refused('the new chart has no values.schema.json that can be read');
  const original = mergedValues(application.request.values);
  if (typeof original === 'string') return refused(`the values ${original}`);
  const defaultsReading = readDocument(application.newDefaults);
  const defaults = defaultsReading.kind === 'Read' ? defaultsReading.value : {};
  const findings = check(original, newSchema, { kind: 'Values', defaults });
  if (findings.length === 0)
    return refused('helm refuses the chart for a reason that its schema does not show in our values');
  const unwritten = needsAnAuthor(findings, newSchema);
  if (unwritten.length > 0)
    return refused(
      `somebody has to decide on ${unwritten.map(dotted).join(', ')}, which the new chart requires`,
    );
  const question: ValuesQuestion = {
    chart: application.chart,
    from: application.from,
    to: application.to,
    values: writeDocument(original),
    findings,
    vacancies: vacancies(original, newSchema, findings),
    oldSchema: schemaOf(application.oldSchema),
    newSchema,
  };
  const answer = readMigration(await ask(question, signal));
  if (answer.kind === 'Refused') return refused(answer.reason);
  const validation = validateValues({
    original,
    proposed: answer.document,
    schema: newSchema,
    defaults,
    guardDrops: levers.vacancies,
  });
  if (validation.kind === 'Refused')
    return refused(...validation.reasons.map((reason) => `the proposal is refused: ${reason}`));
  const rendered = await helm.template(
    { ...application.request, values: [writeDocument(answer.document)] },
    signal,
  );
  if (rendered.kind !== 'Rendered') return refused(`helm refuses the proposal: ${rendered.message}`);
  return {
    kind: 'Proposed',
    original,
    proposed: answer.document,
    notes: answer.notes,
    lost: validation.lost.map(({ path, value }) => ({ where: application.name, key: dotted(path), value })),
  };
}

/** Where the repository sets the values, with the change in it; or why not. */
function place(
  tree: RepositoryTree,
  policy: ValuesRequest['policy'],
  staged: ReadonlyMap<string, string>,
  { candidates }: ValuesApplication,
  { original, proposed }: Extract<Proposal, { kind: 'Proposed' }>,
): { readonly path: string; readonly text: string; readonly operations: readonly Operation[] } | string {
  const operations = planOf(original, proposed);
  const readable = candidates.flatMap((path) => {
    const text = staged.get(path) ?? textOf(tree, path);
    return text === undefined ? [] : [{ path, text }];
  });
  const location = locate(readable, operations);
  if (location.kind === 'NotFound') return location.reason;
  const { path, text } = location.candidate;
  const refusal = pathRefusal({ ...policy, scope: [path], evidence: '' }, path);
  if (refusal !== undefined) return `${path} may not be edited: ${refusal.message}`;
  const written = writeOver(text, location.anchor, original, proposed);
  return written.kind === 'Refused' ? `${path} ${written.reason}` : { path, text: written.text, operations };
}

function textOf(tree: RepositoryTree, path: string): string | undefined {
  const file = resolveFile(tree, path);
  if (file.kind === 'Refused') return undefined;
  const decoded = decodeYaml(file.bytes);
  return decoded.kind === 'Text' ? decoded.text : undefined;
}

/** As helm joins them. */
function mergedValues(layers: readonly string[]): Mapping | string {
  let all: Mapping = {};
  for (const layer of layers) {
    const reading = readDocument(layer);
    if (reading.kind === 'Unreadable') return reading.reason;
    if (reading.value === null) continue;
    if (!isMapping(reading.value)) return 'are no mapping';
    all = merged(all, reading.value);
  }
  return all;
}

function schemaOf(text: string | undefined): Schema | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isMapping(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const refused = (...reasons: readonly string[]): Proposal => ({ kind: 'Refused', reasons });
