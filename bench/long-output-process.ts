// A process of its own, so that what its memory shows is the command's: its output comes from a pod through the
// sandbox port, is counted, and all but the first 1 MiB dropped.
// Arguments: kubeconfig namespace bytes. Prints one JSON object.
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { execConnection } from '../src/kube/exec-connection.ts';
import { silentLogger } from '../src/kube/log.ts';
import { createTransport } from '../src/kube/transport.ts';
import { podSandbox } from '../src/sandbox/pod/pod.ts';

export interface LongOutputReport {
  /** Highest growth of RSS over what the process had after 100 MB of the same. */
  readonly growthBytes: number;
  readonly milliseconds: number;
}

const WARM_UP_BYTES = 100_000_000;
const TIMEOUT_MS = 3_600_000;

const [kubeconfig = '', namespace = '', total = ''] = process.argv.slice(2);
const connection = connect({ kind: 'Files', paths: [kubeconfig] });
const transport = createTransport(connection);
const sandbox = podSandbox({
  connection: execConnection(connection),
  client: createClient(transport),
  ...{ namespace, pod: 'box', logger: silentLogger },
  ref: { kind: 'Pod', name: 'box', namespace },
  deletePod: async () => undefined,
});
await sandbox.start();
await print(WARM_UP_BYTES);
globalThis.gc?.();
const before = process.memoryUsage.rss();
let highest = before;
const sampler = setInterval(() => {
  highest = Math.max(highest, process.memoryUsage.rss());
}, 10);
const begun = performance.now();
await print(Number(total));
const milliseconds = performance.now() - begun;
clearInterval(sampler);
const report: LongOutputReport = { growthBytes: highest - before, milliseconds };
console.log(JSON.stringify(report));
await transport.close();

async function print(bytes: number): Promise<void> {
  const result = await sandbox.exec(`head -c ${bytes} /dev/zero`, { timeoutMs: TIMEOUT_MS });
  if (result.kind !== 'Exited' || result.exitCode !== 0 || result.stdoutBytes !== bytes)
    throw new Error(`bench: ${result.kind}, ${result.stdoutBytes} bytes of ${bytes}`);
}
