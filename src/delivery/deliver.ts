import { type AppliedEdit, applyEdits, type RejectedEdit } from './edits/apply.ts';
import { subjectsOf } from './evidence/subjects.ts';
import type { Testimony } from './evidence/testimony.ts';
import { gateColour } from './gate/counts.ts';
import { type GateResult, gateReport, type RefusedValues } from './gate/gate.ts';
import { keptCharts } from './gate/kept-charts.ts';
import { reportMarkdown } from './gate/markdown.ts';
import type { ApplicationReport, GateReport } from './gate/report.ts';
import { ALL_LEVERS, type Levers, without } from './levers.ts';
import type { LostValue } from './migrate/questions.ts';
import { type RestructuredDocument, restructure } from './migrate/restructure.ts';
import { type MigratedValues, migrateValues, type ValuesApplication } from './migrate/values.ts';
import { withChanges } from './overlay-tree.ts';
import { choosePath, type PathSettings } from './paths/choose.ts';
import { isIdle, takesBack, wrongDirection } from './paths/direction.ts';
import { explain } from './paths/explain.ts';
import { triage } from './paths/triage.ts';
import type { Bump, ChartSource, FileChange, Helm, RepositoryTree } from './port.ts';
import type { DeliveryQuestions } from './prompts/ask-delivery.ts';
import { crdSchema } from './structural/crd-schema.ts';
import { jsonValue } from './structural/value.ts';
import type { Verdict } from './verdict.ts';

export interface DeliverySettings extends PathSettings {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly allOrNothing: boolean;
  readonly maxDocuments: number;
}

export interface DeliverRequest {
  readonly bump: Bump;
  /** At the merge base. */
  readonly base: RepositoryTree;
  readonly head: RepositoryTree;
  readonly settings: DeliverySettings;
}

export interface DeliverParts {
  readonly charts: ChartSource;
  readonly helm: Helm;
  readonly questions: DeliveryQuestions;
  /** What is stored in the cluster of what the report drops; undefined: nobody may look, or it failed. */
  readonly live: (report: GateReport, signal?: AbortSignal) => Promise<string | undefined>;
  /** Called where the answer is prose, and nowhere else. */
  readonly testimony: (
    report: GateReport,
    subjects: readonly string[],
    signal?: AbortSignal,
  ) => Promise<Testimony>;
  /** Default: all of them. Evals take one away to see what it is worth. */
  readonly levers?: Levers;
}

/** What came of it, whole: notes, statuses and labels are made from this and nothing else. */
export interface Delivery {
  readonly report: GateReport;
  readonly reportText: string;
  readonly live: string | undefined;
  readonly outcome: DeliveryOutcome;
}

export type DeliveryOutcome =
  | { readonly kind: 'NoAction'; readonly why: string; readonly verdict?: Verdict }
  | {
      readonly kind: 'Explained';
      readonly verdict: Verdict;
      readonly look: boolean;
      readonly testimony: Testimony;
    }
  | {
      readonly kind: 'Push';
      readonly files: readonly FileChange[];
      readonly change: Change;
      /** The gate's words on the repository with the change in it: `Green`, or what is still red. */
      readonly after: readonly string[];
    }
  | {
      readonly kind: 'Escalate';
      /** A few words for the commit status. */
      readonly reason: string;
      /** All that stood in the way, one sentence each. */
      readonly reasons: readonly string[];
      readonly verdict?: Verdict;
      readonly rejected: readonly RejectedEdit[];
      readonly withheld: readonly AppliedEdit[];
      readonly testimony: Testimony;
    };

export type Change =
  | {
      readonly kind: 'Edits';
      readonly verdict: Verdict;
      readonly applied: readonly AppliedEdit[];
      readonly rejected: readonly RejectedEdit[];
    }
  | {
      readonly kind: 'Restructured';
      readonly documents: readonly RestructuredDocument[];
      readonly lost: readonly LostValue[];
    }
  | {
      readonly kind: 'Values';
      readonly applications: readonly MigratedValues[];
      readonly lost: readonly LostValue[];
    };

/** From two trees to one outcome. Writes nothing; rejects with what the sandbox or an abort throws. */
export async function deliver(
  request: DeliverRequest,
  given: DeliverParts,
  signal?: AbortSignal,
): Promise<Delivery> {
  const parts = { ...given, charts: keptCharts(given.charts) };
  const gate = await gateOf(request, parts, request.head, signal);
  const { report } = gate;
  const reportText = reportMarkdown(report);
  const path = choosePath(report, request.settings);
  if (path.kind === 'Nothing')
    return { report, reportText, live: undefined, outcome: { kind: 'NoAction', why: path.why } };
  const live =
    path.kind === 'Explain' || path.kind === 'Triage' ? await parts.live(report, signal) : undefined;
  const context: Context = { request, parts, gate, reportText, live, signal };
  return { report, reportText, live, outcome: await outcomeOn(path, context) };
}

interface Context {
  readonly request: DeliverRequest;
  readonly parts: DeliverParts;
  readonly gate: GateResult;
  readonly reportText: string;
  readonly live: string | undefined;
  readonly signal: AbortSignal | undefined;
}

async function outcomeOn(
  path: Exclude<ReturnType<typeof choosePath>, { kind: 'Nothing' }>,
  context: Context,
): Promise<DeliveryOutcome> {
  switch (path.kind) {
    case 'Escalate':
      return escalation(context, path.why, [path.why]);
    case 'Explain':
      return explained(context);
    case 'Restructure':
      return restructured(context);
    case 'Values':
      return valuesMigrated(context);
    case 'Triage':
      return triaged(context);
  }
}

async function explained(context: Context): Promise<DeliveryOutcome> {
  const { request, parts, gate, reportText, live, signal } = context;
  const testimony = await testimonyOf(context);
  const { report } = gate;
  const found = await explain(
    { bump: request.bump, report, reportText, live, testimony },
    parts.questions,
    signal,
  );
  return found.kind === 'None'
    ? { kind: 'NoAction', why: `the gate is green; there is no explanation, since ${found.reason}` }
    : { ...found, testimony };
}

async function triaged(context: Context): Promise<DeliveryOutcome> {
  const { request, parts, gate, reportText, live, signal } = context;
  const { bump, head, settings } = request;
  const found = await triage(
    { bump, head, report: gate.report, reportText, live, policy: settings },
    parts.questions,
    signal,
    parts.levers,
  );
  switch (found.kind) {
    case 'NoAction':
      return { kind: 'NoAction', why: found.verdict.summary, verdict: found.verdict };
    case 'Escalate': {
      const refusals = found.rejected.map(({ path, key, message }) => `${path}, ${key}: ${message}`);
      const outcome = await escalation(
        context,
        found.reason,
        refusals.length > 0 ? refusals : [found.reason],
      );
      return {
        ...outcome,
        rejected: found.rejected,
        withheld: found.withheld,
        ...(found.verdict !== undefined && { verdict: found.verdict }),
      };
    }
    case 'Fix': {
      const { verdict, applied, rejected } = found;
      return pushed(context, found.files, { kind: 'Edits', verdict, applied, rejected });
    }
  }
}

async function restructured(context: Context): Promise<DeliveryOutcome> {
  const { request, parts, gate, signal } = context;
  const { head, settings } = request;
  const definitions = {
    base: gate.definitions.base.map(jsonValue),
    head: gate.definitions.head.map(jsonValue),
  };
  const found = await restructure(
    {
      tree: head,
      dropped: gate.report.applications.flatMap(({ droppedVersions }) => droppedVersions),
      policy: settings,
      schemasOf: (wanted) => ({
        before: crdSchema(definitions.base, wanted),
        after: crdSchema(definitions.head, wanted),
      }),
      maxDocuments: settings.structuralMigration ? settings.maxDocuments : 0,
    },
    parts.questions.restructure,
    signal,
  );
  if (found.kind === 'Refused') return escalation(context, 'manifests could not be migrated', found.reasons);
  return pushed(context, found.files, { kind: 'Restructured', documents: found.documents, lost: found.lost });
}

async function valuesMigrated(context: Context): Promise<DeliveryOutcome> {
  const { request, parts, gate, signal } = context;
  const applications = gate.report.applications.flatMap((application): readonly ValuesApplication[] => {
    const refused = gate.refused.get(application.name);
    return refused === undefined ? [] : [valuesApplication(application, refused, gate.report)];
  });
  const found = await migrateValues(
    { tree: request.head, policy: request.settings, applications },
    parts.helm,
    parts.questions.valuesMigration,
    signal,
    parts.levers,
  );
  if (found.kind === 'Refused') return escalation(context, 'values could not be migrated', found.reasons);
  return pushed(context, found.files, { kind: 'Values', applications: found.applications, lost: found.lost });
}

function valuesApplication(
  { name, path, base, head, valueSources = [] }: ApplicationReport,
  { base: before, head: after, request }: RefusedValues,
  { changedFiles }: GateReport,
): ValuesApplication {
  return {
    name,
    chart: head?.chart ?? name,
    from: base?.version ?? '',
    to: head?.version ?? '',
    oldSchema: before?.schema,
    newSchema: after.schema,
    newDefaults: after.values,
    request,
    candidates: [...new Set([...valueSources.map((source) => source.path), path, ...changedFiles])],
  };
}

/** Helm has the last word on what is pushed: the repository is rendered with the change in it. */
async function pushed(
  context: Context,
  files: readonly FileChange[],
  change: Change,
): Promise<DeliveryOutcome> {
  const { request, parts, signal } = context;
  const after = await gateOf(request, parts, withChanges(request.head, files), signal);
  const broken = after.report.applications.flatMap(({ name, unrenderable, schemaRefusals }) => {
    const words = unrenderable.head ?? schemaRefusals[0];
    return words === undefined
      ? []
      : [`${name} would not render with the change: ${words.split('\n')[0] ?? ''}`];
  });
  if (broken.length > 0) return withheld(context, change, 'helm refuses the repaired repository', broken);
  const astray =
    change.kind === 'Edits' ? await directionFault(context, change.applied, after.report) : undefined;
  if (astray !== undefined)
    return withheld(context, change, 'the edits do not clear what the gate found', [astray]);
  const colour = gateColour(after.report);
  return { kind: 'Push', files, change, after: colour.colour === 'Green' ? [] : colour.why };
}

/** What was sound by itself is told with the reason why it was not pushed. */
async function withheld(
  context: Context,
  change: Change,
  reason: string,
  reasons: readonly string[],
): Promise<DeliveryOutcome> {
  const escalated = await escalation(context, reason, reasons);
  if (change.kind !== 'Edits') return escalated;
  const { verdict, applied, rejected } = change;
  return { ...escalated, verdict, withheld: applied, rejected };
}

/** Each edit by itself has to mend something: one that rides along is nobody's repair. */
async function directionFault(
  context: Context,
  applied: readonly AppliedEdit[],
  after: GateReport,
): Promise<string | undefined> {
  const { request, parts, gate, signal } = context;
  const { levers = ALL_LEVERS } = parts;
  if (!levers.direction || applied.length === 0) return undefined;
  const fault = takesBack(request.base, applied) ?? wrongDirection(gate.report, after, applied);
  if (fault !== undefined || applied.length === 1) return fault;
  if (applied.length > MAX_TRIED) return `${applied.length} edits are more than are tried one by one`;
  const { allow, deny } = request.settings;
  const policy = { allow, deny, scope: gate.report.changedFiles, evidence: '' };
  for (const edit of applied) {
    // Held against the evidence before.
    const { files } = applyEdits(
      request.head,
      policy,
      applied.filter((one) => one !== edit),
      { levers: without('corroboration') },
    );
    const { report } = await gateOf(request, parts, withChanges(request.head, files), signal);
    if (isIdle(report, after)) return `the gate finds no more without the edit of ${edit.key}`;
  }
  return undefined;
}

/** Renderings take seconds. */
const MAX_TRIED = 16;

async function escalation(
  context: Context,
  reason: string,
  reasons: readonly string[],
): Promise<Extract<DeliveryOutcome, { kind: 'Escalate' }>> {
  const testimony = await testimonyOf(context);
  return { kind: 'Escalate', reason, reasons, rejected: [], withheld: [], testimony };
}

const testimonyOf = ({ parts, gate, signal }: Context): Promise<Testimony> =>
  parts.testimony(gate.report, subjectsOf(gate.report), signal);

const gateOf = (
  { bump, base }: DeliverRequest,
  { charts, helm }: DeliverParts,
  head: RepositoryTree,
  signal: AbortSignal | undefined,
): Promise<GateResult> =>
  gateReport({ base, head, project: bump.project, charts, helm, ...(signal && { signal }) });
