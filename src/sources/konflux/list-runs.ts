import { z } from 'zod';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import type { SourceScope } from '../port.ts';
import { type Source, sourceTool } from '../source-tool.ts';
import type { KonfluxAccess } from './access.ts';
import type { Captured } from './json/list-reader.ts';
import { apisOf, Gaps, merged, type Resource } from './merged.ts';
import { foreignCommit, ownSha, sha } from './scope.ts';

const KINDS: Readonly<Record<Resource, string>> = { pipelineruns: 'PipelineRuns', taskruns: 'TaskRuns' };

/** `konflux_list_pipelineruns` and `konflux_list_taskruns`. */
export function listRuns(
  source: Source,
  access: KonfluxAccess,
  scope: SourceScope,
  resource: Resource,
): Tool {
  const kind = KINDS[resource];
  return sourceTool(source, {
    name: `konflux_list_${resource}`,
    description: `All Tekton ${kind} of the commit in Konflux as JSON lines, one ${kind.slice(0, -1)} a line.`,
    notes: NOTES,
    schema: z.object({ sha }),
    async run(args, { signal }) {
      const own = ownSha(scope, args.sha);
      if (own === undefined) return { kind: 'Error', message: foreignCommit(scope, args.sha) };
      const gaps = new Gaps();
      const items = merged(access, { resource, sha: own, signal }, gaps);
      const first = await items.next();
      if (!first.done) return streamed(first.value, items, gaps);
      const missing = gaps.text();
      if (missing !== undefined && gaps.silent === apisOf(access).length)
        return { kind: 'Error', message: `${missing} Name this as missing in the answer and go on without.` };
      const note = missing === undefined ? none(kind, own) : `What could be read has no ${kind} of ${own}.`;
      return { kind: 'Json', value: { items: 0, note, ...(missing ? { incomplete: missing } : {}) } };
    },
  });
}

const NOTES = `\`konflux_list_pipelineruns\` and \`konflux_list_taskruns\` read the cluster and KubeArchive, which keeps what the cluster has deleted, and give each object once (by \`metadata.uid\`). An \`incomplete\` in the result names what could not be read: do not conclude that something did not run because it is not listed.
A BUILD PipelineRun has the label \`pipelinesascode.tekton.dev/sha\`, a TEST PipelineRun \`pac.test.appstudio.openshift.io/sha\` (and \`test.appstudio.openshift.io/scenario\`); both are listed. \`status.conditions[0]\` has \`status\`, \`reason\` and \`message\`; of a TaskRun \`metadata.labels["tekton.dev/pipelineRun"]\` names its PipelineRun and \`status.podName\` its pod, for \`konflux_get_pod_log\`. Failures: \`jq -c 'select(.status.conditions[0].status=="False") | {name: .metadata.name, pod: .status.podName, message: .status.conditions[0].message}' FILE\`.
With \`konflux_ui\` from the result link a PipelineRun as \`[NAME](KONFLUX_UI/pipelinerun/NAME)\`.`;

const none = (kind: string, sha: string): string =>
  `No ${kind} carry commit ${sha}: none ran for it, or none has begun yet.`;

function streamed(first: Captured, rest: AsyncIterable<Captured>, gaps: Gaps): ToolOutput {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield* line(first);
    for await (const item of rest) yield* line(item);
  }
  return {
    kind: 'Stream',
    chunks: chunks(),
    suffix: '.jsonl',
    binary: false,
    incomplete: () => gaps.text(),
  };
}

/** In one line, whatever the layout was: in JSON line breaks stand between values only. */
function* line({ json, parts }: Captured): Generator<Uint8Array> {
  if (LINE_BREAKS.some((byte) => json.includes(byte)))
    yield json.map((byte) => (LINE_BREAKS.includes(byte) ? SPACE : byte));
  else yield* parts;
  yield LINE_END;
}

const LINE_BREAKS = [0x0a, 0x0d];
const SPACE = 0x20;
const LINE_END = Uint8Array.of(0x0a);
