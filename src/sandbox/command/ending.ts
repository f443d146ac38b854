import { type Clock, sleep } from '../../kube/clock.ts';
import type { ByteSink } from '../../kube/exec.ts';
import { SandboxLostError } from '../port.ts';
import type { CommandEnd, CommandStreams } from './commands.ts';
import { CommandInput, EndMarkFilter } from './input.ts';
import { KILL_SCRIPT, killArguments } from './kill-script.ts';
import { shellScript } from './marked-command.ts';

/** What ending a command needs of its backend. */
export interface EndingOptions {
  /** For messages: `pod sandboxes/box`. */
  readonly where: string;
  readonly clock: Clock;
  /** Runs the words unmarked; resolves with their exit code. */
  runPlain(command: readonly string[], options: { readonly timeoutMs: number }): Promise<number>;
  /**
   * What it means that `runPlain` rejected. Gone: nothing runs there any more. Stuck: the sandbox can start no
   * process, or its processes do not come to an end. Away: not known, nobody answers.
   */
  judge(error: unknown): Promise<'Gone' | 'Stuck' | 'Away'>;
}

/** One command that runs. */
export interface RunningCommand {
  readonly id: string;
  /** When it was asked for, on the clock's monotonic time. */
  readonly begunMs: number;
  /** Settles with its connection. */
  readonly settled: Promise<unknown>;
  /** Closes the connection. */
  cut(): void;
}

/** For one attempt: it takes some 60 ms in a pod, 300 ms with Podman, and seconds among a thousand processes. */
const KILL_ATTEMPT_MS = 20_000;
const KILL_ATTEMPTS = 2;
const RETRY_PAUSE_MS = 200;
/** How long a command that was asked to end may take to write its last words. */
const GRACE_MS = 3_000;
/** After its processes are dead, an exec gets this long to say so with the rest of its output. */
const SETTLE_MS = 2_000;

/**
 * Waits for a command that runs until it ends, and hands its end to `finished`; ends it when its time is over or its
 * signal is aborted before. Rejects with what broke its input, and with the signal's reason.
 */
export async function untilEnded<End>(
  options: EndingOptions,
  command: Omit<RunningCommand, 'settled'> & {
    readonly running: Promise<End>;
    readonly input: CommandInput | undefined;
  },
  { signal, timeoutMs }: Pick<CommandStreams, 'signal' | 'timeoutMs'>,
  finished: (end: End) => CommandEnd | Promise<CommandEnd>,
): Promise<CommandEnd> {
  const { running, input, ...rest } = command;
  const stop = Promise.withResolvers<'TimedOut' | 'Aborted'>();
  const onAbort = () => stop.resolve('Aborted');
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  const cancelTimer =
    timeoutMs === undefined ? undefined : options.clock.after(timeoutMs, () => stop.resolve('TimedOut'));
  try {
    const first = await Promise.race([running.then((end) => ({ end })), stop.promise]);
    if (input?.failure !== undefined) throw input.failure.cause;
    if (typeof first !== 'string') return await finished(first.end);
    const ended = endCommand(options, { ...rest, settled: running }, { polite: first === 'TimedOut' });
    if (first === 'TimedOut') {
      await ended;
      return { kind: 'TimedOut' };
    }
    // Whoever gave the run up deletes its sandbox, whatever is left in it.
    await ended.catch(() => undefined);
    throw signal?.reason;
  } finally {
    cancelTimer?.();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** A command's input, and the filter of its stderr that finds where it ended. `endMark`: an id that is used once. */
export function inputOf(
  options: EndingOptions,
  { id, begunMs }: Pick<RunningCommand, 'id' | 'begunMs'>,
  endMark: string,
  stdin: AsyncIterable<Uint8Array>,
  sink: ByteSink | undefined,
) {
  const source = new CommandInput(stdin, () => killCommand(options, { id, begunMs }));
  return { endMark, source, stderr: new EndMarkFilter(endMark, sink, () => source.end()) };
}

/**
 * Ends a command and takes the rest of its output; afterwards its connection is closed. `polite`: it is asked first
 * (SIGTERM), since what a program prints when it is told to stop is often what was wanted of it. Rejects with
 * `SandboxLostError` when the sandbox cannot get rid of its processes.
 */
export async function endCommand(
  options: EndingOptions,
  command: RunningCommand,
  { polite }: { readonly polite: boolean },
): Promise<void> {
  const { clock } = options;
  const settled = command.settled.then(
    () => true,
    () => true,
  );
  const settledWithin = (ms: number) => Promise.race([settled, sleep(clock, ms).then(() => false)]);
  if (polite && (await ask(options, command))) await settledWithin(GRACE_MS);
  const first = await killCommand(options, command);
  const inTime = await settledWithin(SETTLE_MS);
  if (!inTime) command.cut();
  // It may have been about to start when it was looked for, and have got its mark only now.
  const last = inTime ? first : await killCommand(options, command);
  if (last !== 'Stuck') return;
  throw new SandboxLostError(
    `sandbox ${options.where} is given up: the processes of a command that was killed are still there, or none can be started any more`,
  );
}

/** Kills what carries the command's id, and what it left behind without one. Never rejects. */
export async function killCommand(
  { clock, runPlain, judge }: EndingOptions,
  { id, begunMs }: Pick<RunningCommand, 'id' | 'begunMs'>,
): Promise<'Killed' | 'Stuck' | 'Away'> {
  let outcome: 'Stuck' | 'Away' = 'Away';
  for (let attempt = 0; attempt < KILL_ATTEMPTS; attempt++) {
    try {
      const words = shellScript(KILL_SCRIPT, ...killArguments(id, 'KILL', clock.monotonicMs() - begunMs));
      if ((await runPlain(words, { timeoutMs: KILL_ATTEMPT_MS })) === 0) return 'Killed';
      outcome = 'Stuck';
    } catch (error) {
      const judged = await judge(error);
      if (judged === 'Gone') return 'Killed';
      outcome = judged;
      await sleep(clock, RETRY_PAUSE_MS * 2 ** attempt);
    }
  }
  return outcome;
}

/** False when nobody could be asked. */
async function ask({ clock, runPlain }: EndingOptions, { id, begunMs }: RunningCommand): Promise<boolean> {
  const words = shellScript(KILL_SCRIPT, ...killArguments(id, 'TERM', clock.monotonicMs() - begunMs));
  return runPlain(words, { timeoutMs: KILL_ATTEMPT_MS }).then(
    () => true,
    () => false,
  );
}
