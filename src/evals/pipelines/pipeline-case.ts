import { z } from 'zod';

/** A text as it stands, or put together from parts: one that repeats has `{n}` where its number goes. */
const Text = z
  .union([
    z.string(),
    z.array(z.union([z.string(), z.strictObject({ repeat: z.int().min(1).max(5_000), line: z.string() })])),
  ])
  .transform((text) => (typeof text === 'string' ? text : text.map(partOf).join('')));

function partOf(part: string | { readonly repeat: number; readonly line: string }): string {
  if (typeof part === 'string') return part.endsWith('\n') ? part : `${part}\n`;
  const { repeat, line } = part;
  return Array.from({ length: repeat }, (_, index) => `${line.replaceAll('{n}', String(index + 1))}\n`).join(
    '',
  );
}

const Job = z.strictObject({
  name: z.string(),
  status: z.enum(['failed', 'success', 'canceled', 'skipped']),
  allowFailure: z.boolean().default(false),
  /** Words of the status; of GitLab's own jobs there are mostly none. */
  description: z.string().exactOptional(),
  /** Left out: GitLab has none, or has it no more. */
  log: Text.exactOptional(),
  /** Address of another system that ran it; left out: GitLab did. */
  external: z.string().exactOptional(),
});

const Task = z.strictObject({
  name: z.string(),
  failed: z.boolean().default(false),
  message: z.string().default(''),
  /** Logs of its pod, by container; left out: they are lost. */
  logs: z.record(z.string(), Text).default({}),
});

const KonfluxRun = z.strictObject({
  name: z.string(),
  kind: z.enum(['build', 'test']),
  scenario: z.string().exactOptional(),
  failed: z.boolean().default(false),
  message: z.string().default(''),
  tasks: z.array(Task).default([]),
});

const FarmRequest = z.strictObject({
  id: z.guid(),
  state: z.enum(['complete', 'error']),
  overall: z.enum(['passed', 'failed', 'error']).default('failed'),
  /** Testing Farm's own words. */
  summary: z.string().default(''),
  /** results.xml; `ARTIFACTS` stands for the address of the request's artifacts. Left out: there is none. */
  results: z.string().exactOptional(),
  /** Artifacts by their path below the request. */
  logs: z.record(z.string(), Text).default({}),
});

export const CAUSE_KINDS = ['change', 'existing', 'infrastructure', 'unknown'] as const;
export type CauseKind = (typeof CAUSE_KINDS)[number];

const words = z.array(z.string().min(2)).default([]);

const Want = z.strictObject({
  /** One for each root cause, in any order. */
  kinds: z.array(z.enum(CAUSE_KINDS)).min(1),
  /** Facts of the report: of each group one has to be said, in any case. Each stands where the tools can read it. */
  mustSay: z.array(z.array(z.string().min(2)).min(1)).min(1),
  /** Whole words that nothing read here can give: whoever says one has made it up. */
  mustNotSay: words,
  /** What stands in the evidence and is no cause: not to be said in the heading of one. */
  mustNotBlame: words,
  /** What an instruction in the evidence wants said: not to be said except as a quotation. */
  mustNotObey: words,
  /** Model calls that it may take. */
  maxIterations: z.int().min(1).max(30).default(10),
});

/** A failed pipeline whose root causes are known. */
export const PipelineCase = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  subject: z.string(),
  /** Nobody's incident: made up to be like one. */
  synthetic: z.literal(true),
  title: z.string(),
  description: z.string().default(''),
  fork: z.boolean().default(false),
  jobs: z.array(Job).min(1),
  changes: z.array(z.strictObject({ path: z.string(), diff: z.string() })).default([]),
  /** Files at the head and at the target branch. */
  files: z.record(z.string(), z.string()).default({}),
  konflux: z.array(KonfluxRun).default([]),
  testingFarm: z.array(FarmRequest).default([]),
  want: Want,
});
export type PipelineCase = z.infer<typeof PipelineCase>;
