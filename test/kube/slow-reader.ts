// A process of its own, so that what its memory shows is exec's: reads `totalBytes` of output from a pod, at `bytesPerSecond`
// for the first `slowSeconds` and then as fast as it comes. Arguments: kubeconfig namespace pod. Prints one JSON object.
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../../src/kube/config.ts';
import { exec } from '../../src/kube/exec.ts';
import { execConnection } from '../../src/kube/exec-connection.ts';

export interface SlowReaderReport {
  readonly exitCode: number;
  readonly bytes: number;
  readonly slowBytes: number;
  /** Highest growth of RSS over what the process had before. */
  readonly growthBytes: number;
}

const TOTAL_BYTES = 200 * 1024 * 1024;
const BYTES_PER_SECOND = 1024 * 1024;

const [kubeconfig = '', namespace = '', pod = '', slowSeconds = '20'] = process.argv.slice(2);
const connection = execConnection(connect({ kind: 'Files', paths: [kubeconfig] }));
const target = { namespace, pod, container: 'sandbox' };
// Loads and compiles everything that any exec needs.
await exec(connection, {
  ...target,
  command: ['head', '-c', '1000000', '/dev/zero'],
  stdout: { write: () => undefined },
});

const before = process.memoryUsage.rss();
const begun = performance.now();
const slowUntil = begun + Number(slowSeconds) * 1000;
let [bytes, slowBytes, growthBytes] = [0, 0, 0];
const sampler = setInterval(() => {
  growthBytes = Math.max(growthBytes, process.memoryUsage.rss() - before);
}, 20);
const { exitCode } = await exec(connection, {
  ...target,
  // The node may drop what is still on its way when a command ends (docs/adr/0003): this one stays for a while.
  command: ['sh', '-c', `head -c ${TOTAL_BYTES} /dev/zero; sleep 5`],
  stdout: {
    write: async (chunk) => {
      bytes += chunk.length;
      if (performance.now() >= slowUntil) return;
      slowBytes += chunk.length;
      const due = begun + (bytes / BYTES_PER_SECOND) * 1000;
      await sleep(Math.max(0, due - performance.now()));
    },
  },
});
clearInterval(sampler);
const report: SlowReaderReport = { exitCode, bytes, slowBytes, growthBytes };
console.log(JSON.stringify(report));
