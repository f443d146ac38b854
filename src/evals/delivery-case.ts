import { z } from 'zod';

const Scalar = z.union([z.string(), z.number(), z.boolean()]);

/** One object that a chart renders: what it looks like is a pure function of the values. */
const ChartObject = z.strictObject({
  apiVersion: z.string().default('v1'),
  kind: z.string(),
  name: z.string(),
  namespace: z.string().exactOptional(),
  /** Rendered only while every dotted value is this one; a text that ends in `*` is the beginning of one. */
  when: z.record(z.string(), Scalar).default({}),
  /** Dotted fields of the object; `$key` is the value of that dotted key. */
  fields: z.record(z.string(), Scalar).default({}),
});

const Crd = z.strictObject({
  group: z.string(),
  kind: z.string(),
  plural: z.string(),
  /** Served versions and the OpenAPI schema of each. */
  versions: z.record(z.string(), z.record(z.string(), z.unknown())),
});

export const EvalChart = z.strictObject({
  /** values.yaml. */
  values: z.string().default(''),
  /** values.schema.json. */
  schema: z.record(z.string(), z.unknown()).exactOptional(),
  objects: z.array(ChartObject).default([]),
  crds: z.array(Crd).default([]),
  /** Helm's words, where it renders not at all. */
  fails: z.string().exactOptional(),
});
export type EvalChart = z.infer<typeof EvalChart>;

const Bump = z.strictObject({
  chart: z.string(),
  from: z.string(),
  to: z.string(),
  namespace: z.string().default('apps'),
  form: z.enum(['Argo', 'Flux']).default('Argo'),
});

const WantedEdit = z.strictObject({
  /** Left out: the application's file, and `key` counts from its values. */
  path: z.string().exactOptional(),
  key: z.string(),
  from: z.string(),
  to: z.string(),
});

const Want = z.strictObject({
  class: z.enum(['mechanical', 'escalate', 'no_action']),
  /** False: code decides alone, and no model may be asked. */
  asked: z.boolean().default(true),
  edits: z.array(WantedEdit).default([]),
  /** Migrations: what the document reads like afterwards. */
  document: z.string().exactOptional(),
  /** Words of summary and reasoning, in any case; each stands in the evidence. */
  mustMention: z.array(z.string()).default([]),
  /** Words that only memory could supply; none stands in the evidence. */
  mustNotMention: z.array(z.string()).default([]),
});

export const DELIVERY_PATHS = ['triage', 'explain', 'restructure', 'values'] as const;

/** A bump with what is right to do about it. */
export const DeliveryCase = z
  .strictObject({
    name: z.string().regex(/^[a-z0-9-]+$/),
    path: z.enum(DELIVERY_PATHS),
    subject: z.string(),
    /** Nobody's incident: made up to be like one. */
    synthetic: z.literal(true),
    bump: Bump,
    /** What the repository sets, as YAML; the application's manifest is made around it. */
    values: z.string().default(''),
    /** More files of the repository, at both commits. */
    files: z.record(z.string(), z.string()).default({}),
    /** Files that the merge request changes besides: as they are at the head, over `files`. */
    changed: z.record(z.string(), z.string()).default({}),
    /** Where the merge request moves the application to, besides its version. */
    movedTo: z.strictObject({ namespace: z.string() }).exactOptional(),
    before: EvalChart,
    after: EvalChart,
    live: z.string().exactOptional(),
    notes: z.string().exactOptional(),
    commits: z.string().exactOptional(),
    silence: z.string().exactOptional(),
    allow: z.array(z.string()).default(['apps/**']),
    /** Explain: the case that differs only in whether the evidence has the reason. */
    pair: z.string().exactOptional(),
    /** Restructure: the file whose document is compared. */
    document: z.string().exactOptional(),
    want: Want,
  })
  .superRefine((one, context) => {
    const fault = faultOf(one);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
export type DeliveryCase = z.infer<typeof DeliveryCase>;

/** What a path needs, and what makes no sense on it. */
function faultOf(one: {
  readonly path: (typeof DELIVERY_PATHS)[number];
  readonly document?: string;
  readonly want: z.infer<typeof Want>;
}): string | undefined {
  const { path, want } = one;
  if (want.class === 'mechanical' && path === 'triage' && want.edits.length === 0)
    return 'a mechanical case says which edits are right (want.edits)';
  if (want.class !== 'mechanical' && want.edits.length > 0)
    return 'only a mechanical case has edits (want.edits)';
  if (path === 'explain' && want.class === 'mechanical') return 'nothing is edited on the path explain';
  const migration = path === 'restructure' || path === 'values';
  if (migration && (want.class === 'mechanical') !== (want.document !== undefined))
    return 'a migration is mechanical with want.document, and escalates without';
  if (migration && want.class === 'no_action') return 'a migration is mechanical or escalates';
  if (!migration && want.document !== undefined) return 'only migrations have a document (want.document)';
  if (path === 'restructure' && one.document === undefined)
    return 'a restructure case names its file (document)';
  return undefined;
}
