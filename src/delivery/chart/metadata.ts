import { parse } from 'yaml';
import { z } from 'zod';

/** Versions are texts; one that YAML takes for a number is written as it reads it. */
const words = z.union([z.string(), z.number()]).transform(String);

const dependency = z.object({
  name: z.string().min(1),
  version: words.default('*'),
  repository: z.string().default(''),
  alias: z.string().optional(),
  condition: z.string().optional(),
});

const chartYaml = z.object({
  name: z.string().min(1),
  version: words,
  appVersion: words.optional(),
  type: z.string().optional(),
  // Read for prose only: what is no list of texts is none.
  sources: z.array(z.string()).optional().catch(undefined),
  home: z.string().optional().catch(undefined),
  dependencies: z
    .array(dependency)
    .max(256)
    .nullish()
    .transform((list) => list ?? []),
});

/** What is read of a `Chart.yaml`. */
export type ChartMetadata = z.infer<typeof chartYaml>;
export type ChartDependency = z.infer<typeof dependency>;

/** Longer ones are nobody's, and take long to read. */
const MAX_CHARACTERS = 256 * 1024;

function parsedYaml(text: string): unknown {
  if (text.length > MAX_CHARACTERS) throw new Error(`more than ${MAX_CHARACTERS} characters`);
  return parse(text, { logLevel: 'silent', uniqueKeys: false });
}

/** Undefined when it is none. */
export function parseChartYaml(text: string): ChartMetadata | undefined {
  try {
    return chartYaml.parse(parsedYaml(text));
  } catch {
    return undefined;
  }
}

const lock = z.object({
  dependencies: z.array(z.object({ name: z.string(), version: words })).default([]),
});

/** Exact versions of a `Chart.lock`, by name; empty when it is none. */
export function parseChartLock(text: string): ReadonlyMap<string, string> {
  try {
    const { dependencies } = lock.parse(parsedYaml(text));
    return new Map(dependencies.map(({ name, version }) => [name, version]));
  } catch {
    return new Map();
  }
}
