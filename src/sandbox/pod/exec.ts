import { type Clock, sleep } from '../../kube/clock.ts';
import { type ByteSink, type ExecStatus, exec } from '../../kube/exec.ts';
import type { ExecConnection } from '../../kube/exec-connection.ts';
import { ExecError } from '../../kube/exec-error.ts';

export interface PodExecOptions {
  readonly connection: ExecConnection;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly clock: Clock;
}

export interface PodExecStreams {
  readonly stdin?: AsyncIterable<Uint8Array>;
  readonly stdout?: ByteSink;
  readonly stderr?: ByteSink;
}

/** An API server that restarts is away for some 3 s. */
const PAUSES_MS = [250, 1_000, 3_000] as const;

/**
 * Runs the words in the pod, as exec does. What surely did not begin is tried again, a few times; nothing of the
 * input has been asked for by then.
 */
export async function execInPod(
  options: PodExecOptions,
  command: readonly string[],
  { stdin, stdout, stderr }: PodExecStreams,
  signal: AbortSignal,
): Promise<ExecStatus> {
  const { connection, namespace, pod, container, clock } = options;
  const streams = {
    ...(stdin === undefined ? {} : { stdin }),
    ...(stdout === undefined ? {} : { stdout }),
    ...(stderr === undefined ? {} : { stderr }),
  };
  for (const pause of PAUSES_MS) {
    try {
      return await exec(connection, { namespace, pod, container, command, signal, ...streams });
    } catch (error) {
      if (!(error instanceof ExecError && error.retryable)) throw error;
      await sleep(clock, pause, signal);
    }
  }
  return await exec(connection, { namespace, pod, container, command, signal, ...streams });
}
