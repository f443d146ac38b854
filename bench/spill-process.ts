// A process of its own, so that what its memory shows is the tool's: 200 MB from an HTTP server go through the tool
// registry into a file of a sandbox pod, streamed or (as a tool without streams would) as one text.
// Arguments: kubeconfig namespace pod uid url streamed|buffered. Prints one JSON object.
import type { Tool, ToolOutput } from '../src/agent/tools/port.ts';
import { createRegistry } from '../src/agent/tools/registry.ts';
import { createHttpClient } from '../src/http/client.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { execConnection } from '../src/kube/exec-connection.ts';
import { silentLogger } from '../src/kube/log.ts';
import { createTransport } from '../src/kube/transport.ts';
import { podSandbox } from '../src/sandbox/pod/pod.ts';

export interface SpillReport {
  readonly bytes: number;
  /** Highest growth of RSS over what the process had when everything was loaded and had run once. */
  readonly growthBytes: number;
  readonly milliseconds: number;
}

const MIB = 1024 * 1024;
const WARM_UP_BYTES = 20 * MIB;
const TOTAL_BYTES = 200_000_000;

const [kubeconfig = '', namespace = '', pod = '', uid = '', url = '', variant = ''] = process.argv.slice(2);
const connection = connect({ kind: 'Files', paths: [kubeconfig] });
const transport = createTransport(connection);
const http = createHttpClient();
const sandbox = podSandbox({
  connection: execConnection(connection),
  client: createClient(transport),
  ...{ namespace, pod, uid },
  ref: { kind: 'Pod', name: pod, namespace },
  deletePod: async () => undefined,
  logger: silentLogger,
});
await sandbox.start();
const registry = createRegistry({ sandbox, tools: [tool()] });

await spill(WARM_UP_BYTES);
const before = process.memoryUsage.rss();
let highest = before;
const sampler = setInterval(() => {
  highest = Math.max(highest, process.memoryUsage.rss());
}, 10);
const begun = performance.now();
const bytes = await spill(TOTAL_BYTES);
const milliseconds = performance.now() - begun;
clearInterval(sampler);
const report: SpillReport = { bytes, growthBytes: highest - before, milliseconds };
console.log(JSON.stringify(report));
await http.close();
await transport.close();

async function spill(size: number): Promise<number> {
  const call = { id: 'c', name: 'log', arguments: { size }, rawArguments: JSON.stringify({ size }) };
  const { result } = await registry.execute(call, { signal: AbortSignal.timeout(120_000) });
  if (result['bytes'] !== size) throw new Error(`bench: ${JSON.stringify(result).slice(0, 500)}`);
  return size;
}

function tool(): Tool {
  return {
    definition: { name: 'log', description: 'A log.', parameters: { type: 'object' } },
    parse: (args) => ({ ok: true, args }),
    run: async (args) => output(`${url}?${new URLSearchParams({ size: sizeOf(args) })}`),
  };
}

async function output(from: string): Promise<ToolOutput> {
  const { body } = await http.stream({ url: from, maxBytes: 2 * TOTAL_BYTES });
  if (variant === 'streamed') return { kind: 'Stream', chunks: body, suffix: '.log', binary: false };
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return { kind: 'Text', text: Buffer.concat(chunks).toString() };
}

function sizeOf(args: unknown): string {
  return typeof args === 'object' && args !== null && 'size' in args ? String(args.size) : '0';
}
