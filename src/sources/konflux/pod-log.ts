import { z } from 'zod';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';
import type { SourceScope } from '../port.ts';
import { type Source, sourceTool } from '../source-tool.ts';
import { textStream } from '../text-stream.ts';
import type { KonfluxAccess } from './access.ts';
import { type ContainerLog, containerLog } from './container-log.ts';
import { findPod, type KnownPod, type PodFound } from './pod.ts';
import { shaOf } from './scope.ts';

const pod = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'expected the name of a pod')
  .describe('Name of the pod: status.podName of a TaskRun');
const container = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'expected the name of a container')
  .optional()
  .describe('One container, as step-build. Left out: all of them, each below a line === NAME ===');

export function podLog(source: Source, access: KonfluxAccess, scope: SourceScope): Tool {
  return sourceTool(source, {
    name: 'konflux_get_pod_log',
    description: "The log of a pod of one of the commit's TaskRuns, of one container or of all.",
    notes: NOTES,
    schema: z.object({ pod, container }),
    async run(args, { signal }) {
      const sha = shaOf(scope);
      const found: PodFound =
        sha === undefined ? { kind: 'Foreign' } : await findPod(access, args.pod, sha, signal);
      if (found.kind !== 'Known') return { kind: 'Error', message: refusalOf(scope, args.pod, found) };
      const { containers } = found.pod;
      if (args.container === undefined) return allLogs(access, found.pod, signal);
      if (containers.length > 0 && !containers.some(({ name }) => name === args.container))
        return {
          kind: 'Error',
          message: `Pod ${args.pod} has no container ${args.container}. It has ${containers.map(({ name }) => name).join(', ')}.`,
        };
      return oneLog(access, found.pod, args.container, signal);
    },
  });
}

const NOTES = `\`konflux_get_pod_log\` answers with the log, or with \`log\`: \`empty\` (it ran and wrote nothing), \`not started\` (ask again later), or \`lost\` (it ran, and nobody has kept what it wrote: conclude nothing from it; the TaskRun's \`status\` may still say why it failed).
Steps of a Tekton task are containers \`step-NAME\`. In the log of all containers a line in brackets stands for one that has none.`;

function refusalOf(scope: SourceScope, name: string, found: Exclude<PodFound, { kind: 'Known' }>): string {
  const own = `commit "${scope.sha}"`;
  switch (found.kind) {
    case 'Foreign':
      return `Not allowed: pod ${name}, which does not belong to ${own}. This run reads pods of its own commit only; konflux_list_taskruns names them in status.podName.`;
    case 'Missing':
      return `No pod ${name}, and no TaskRun of ${own} that names it. Take the name from status.podName in konflux_list_taskruns; do not guess others.`;
    case 'Unclear':
      return `Whether pod ${name} belongs to ${own} cannot be seen: ${found.message} Name its log as missing in the answer and go on without.`;
    default:
      return found satisfies never;
  }
}

const ANSWERS = { Empty: 'empty', NotStarted: 'not started', Lost: 'lost' } as const;

async function oneLog(
  access: KonfluxAccess,
  pod: KnownPod,
  container: string,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const log = await containerLog(access, pod, container, signal);
  if (log.kind === 'Unclear')
    return { kind: 'Error', message: `${log.why} Name it as missing in the answer and go on without.` };
  if (log.kind !== 'Log')
    return { kind: 'Json', value: { pod: pod.name, container, log: ANSWERS[log.kind], note: log.why } };
  return textStream(log.chunks, { suffix: '.log', what: `log of ${container}` });
}

/** One after the other, as they ran. Until the first log has begun nothing is promised. */
async function allLogs(access: KonfluxAccess, pod: KnownPod, signal: AbortSignal): Promise<ToolOutput> {
  const sections = sectionsOf(access, pod, signal);
  const begun: Section[] = [];
  for (let next = await sections.next(); !next.done; next = await sections.next()) {
    begun.push(next.value);
    if (next.value.log.kind !== 'Log') continue;
    const missing: string[] = [];
    return stream(written(begun, sections, missing), missing);
  }
  const containers = begun.map(({ container, log }) => ({ container, ...told(log) }));
  const lost = `The logs of pod ${pod.name} are lost: nobody has it any more.`;
  return {
    kind: 'Json',
    value: { pod: pod.name, ...(containers.length === 0 ? { log: 'lost', note: lost } : { containers }) },
  };
}

interface Section {
  readonly container: string;
  readonly log: ContainerLog;
}

async function* sectionsOf(
  access: KonfluxAccess,
  pod: KnownPod,
  signal: AbortSignal,
): AsyncGenerator<Section, undefined> {
  for (const { name } of pod.containers)
    yield { container: name, log: await containerLog(access, pod, name, signal) };
  return undefined;
}

const stream = (chunks: AsyncIterable<Uint8Array>, missing: readonly string[]): ToolOutput => ({
  kind: 'Stream',
  chunks,
  suffix: '.log',
  binary: false,
  incomplete: () => (missing.length === 0 ? undefined : missing.join(' ')),
});

async function* written(
  begun: readonly Section[],
  rest: AsyncIterable<Section>,
  missing: string[],
): AsyncGenerator<Uint8Array> {
  for (const section of begun) yield* writtenOne(section, missing);
  for await (const section of rest) yield* writtenOne(section, missing);
}

async function* writtenOne({ container, log }: Section, missing: string[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`=== ${container} ===\n`);
  if (log.kind !== 'Log') {
    if (log.kind !== 'Empty') missing.push(log.why);
    yield Buffer.from(`[${told(log).log}: ${log.why}]\n`);
    return;
  }
  let last: number | undefined;
  for await (const chunk of asFarAsItGoes(container, log.chunks, missing)) {
    last = chunk.at(-1) ?? last;
    yield chunk;
  }
  if (last !== NEWLINE) yield Buffer.from('\n');
}

const NEWLINE = 0x0a;

const told = (log: ContainerLog): { readonly log: string; readonly note?: string } => {
  if (log.kind === 'Log') return { log: 'there' };
  return { log: log.kind === 'Unclear' ? 'unclear' : ANSWERS[log.kind], note: log.why };
};

/** A log that breaks off keeps what has come. */
async function* asFarAsItGoes(
  container: string,
  chunks: AsyncIterable<Uint8Array>,
  missing: string[],
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      yield chunk;
    }
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    missing.push(
      `The log of ${container} broke off after ${bytes} bytes (${error.message}); the rest is missing.`,
    );
  }
}
