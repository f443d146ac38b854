import { z } from 'zod';
import type { ExecResult, Sandbox } from '../../sandbox/port.ts';
import { ROOM_FOR_PROCESSES, SandboxLostError, SCRATCH } from '../../sandbox/port.ts';
import type { Redact } from '../redaction.ts';
import { defineParameters } from './parameters.ts';
import {
  type CapturedRun,
  type CapturedStream,
  type CaptureFiles,
  captureScript,
  MAX_FILE_BYTES,
  parseReport,
  reportScript,
} from './sandbox-exec-script.ts';
import { decode, headOf, type SpillCounter, spillPath, tailOf } from './spill.ts';

/** EXEC_TIMEOUT: one command may take this long before its process group is killed. */
export const EXEC_TIMEOUT_MS = 120_000;
const REPORT_TIMEOUT_MS = 30_000;
/** The frame holds at most two streams of (3072 + 512 + 1024 + 512) bytes in base64, about 14 KiB. */
const MAX_FRAME_BYTES = 64 * 1024;
/** Status of the wrapper when it could not even begin. */
const CANNOT_BEGIN = 125;
const MIB = 1024 * 1024;

export const sandboxExecParameters = defineParameters(
  z.strictObject({
    command: z
      .string()
      .min(1)
      .describe(`Shell command line, run by sh -c in ${SCRATCH}. No network, no stdin.`),
  }),
);

export const sandboxExecDefinition = {
  name: 'sandbox_exec',
  description:
    `Run a shell command in the sandbox (sh, jq, yq, python3, grep, tar, gzip). It has no network and ${EXEC_TIMEOUT_MS / 1000} s. ` +
    'Returns exit_code, stdout and stderr; output over 4096 bytes is kept in the named file, with its head and tail shown. ' +
    `No file that a command writes can grow beyond ${MAX_FILE_BYTES / MIB} MiB.`,
  parameters: sandboxExecParameters.schema,
};

export interface SandboxExecOptions {
  readonly sandbox: Sandbox;
  readonly counter: SpillCounter;
  readonly redact: Redact;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Default MAX_FILE_BYTES; a multiple of 512. */
  readonly maxFileBytes?: number;
  /** Makes the frame's nonce; at least 64 random bits in characters of a file name. */
  readonly nonce: () => string;
}

/**
 * Runs one command; the answer is at most some 10 KiB whatever it prints. A command that takes too long is
 * killed and answered with `timed_out` and what it had printed until then. Throws `SandboxLostError`.
 */
export async function sandboxExec(
  command: string,
  options: SandboxExecOptions,
): Promise<{ readonly result: Readonly<Record<string, unknown>>; readonly timedOut: boolean }> {
  const { sandbox, counter, signal, timeoutMs = EXEC_TIMEOUT_MS, maxFileBytes = MAX_FILE_BYTES } = options;
  const numbers = [counter.next(), counter.next()] as const;
  const files = {
    nonce: options.nonce(),
    stdoutFile: spillPath(`${numbers[0]}`, '.txt'),
    stderrFile: spillPath(`${numbers[1]}`, '.txt'),
    maxFileBytes,
  };
  const { script, stdin } = captureScript(command, files);
  const limits = { signal, maxOutputBytes: MAX_FRAME_BYTES };
  const ran = await sandbox.exec(script, { ...limits, timeoutMs, ...(stdin && { stdin }) });
  const timedOut = ran.kind === 'TimedOut';
  const reported = timedOut
    ? await sandbox.exec(reportScript(files), { ...limits, timeoutMs: REPORT_TIMEOUT_MS })
    : ran;
  const captured = parseReport(reported.stdout, files.nonce);
  if (!captured) {
    await expectUsable(sandbox, signal);
    if (timedOut) return { result: { error: timeoutMessage(timeoutMs), timed_out: true }, timedOut };
    return { result: { error: noReportMessage(ran) }, timedOut };
  }
  if (!captured.stdout.kept && !captured.stderr.kept) counter.giveBack(numbers);
  else if (!captured.stderr.kept) counter.giveBack([numbers[1]]);
  const fields = streamFields(captured, files, options.redact);
  const result = timedOut
    ? { error: timeoutMessage(timeoutMs), timed_out: true, ...fields }
    : { exit_code: captured.exitCode ?? null, ...fields };
  return { result, timedOut };
}

/**
 * Why a command's report is missing may be that the sandbox is full of its processes, or of its zombies: every
 * further call would fail the same way. Such a sandbox is given up.
 */
async function expectUsable(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const room = await sandbox.exec(ROOM_FOR_PROCESSES, { signal, timeoutMs: REPORT_TIMEOUT_MS });
  if (room.kind === 'Exited' && room.exitCode === 0) return;
  await sandbox.cleanup();
  throw new SandboxLostError('no process can be started in it any more, there are too many');
}

function streamFields(
  captured: CapturedRun,
  { stdoutFile, stderrFile, maxFileBytes }: CaptureFiles,
  redact: Redact,
): Record<string, unknown> {
  return {
    ...fieldsOf('stdout', captured.stdout, stdoutFile, redact),
    ...fieldsOf('stderr', captured.stderr, stderrFile, redact),
    ...cutField(captured, maxFileBytes),
    ...(captured.diskFull && {
      disk_full: `The disk of the sandbox is full: what this command printed or wrote may be missing. Remove files in ${SCRATCH}, then run it again.`,
    }),
  };
}

function fieldsOf(
  name: string,
  stream: CapturedStream,
  file: string,
  redact: Redact,
): Record<string, unknown> {
  if (!stream.kept) {
    const text = decode(stream.head);
    // Where the text does not stand for the bytes (not UTF-8), the model should know how many there were.
    const faithful = Buffer.byteLength(text) === stream.bytes;
    return { [name]: redact(text), ...(!faithful && { [`${name}_bytes`]: stream.bytes }) };
  }
  return {
    [name]: headOf(stream.head, redact),
    [`${name}_truncated`]: true,
    [`${name}_file`]: file,
    [`${name}_bytes`]: stream.bytes,
    ...(stream.lines !== undefined && { [`${name}_lines`]: stream.lines }),
    [`${name}_tail`]: tailOf(stream.tail, redact),
  };
}

/** Writing stopped exactly there when it was the limit that stopped it. */
function cutField(captured: CapturedRun, maxFileBytes: number): Record<string, unknown> {
  const cut = (['stdout', 'stderr'] as const).filter((name) => captured[name].bytes >= maxFileBytes);
  if (cut.length === 0) return {};
  const size = maxFileBytes >= MIB ? `${maxFileBytes / MIB} MiB` : `${maxFileBytes} bytes`;
  return {
    output_cut: `${cut.join(' and ')} reached ${size}, the most that is kept; what would have followed is lost, and the program that wrote it was stopped. Print less, or filter it before it is printed. Remove the file when you do not need it: the disk is small.`,
  };
}

function timeoutMessage(timeoutMs: number): string {
  return `The command was killed after ${timeoutMs / 1000} s. Make it do less, or work on a part of the data.`;
}

/** The wrapper itself failed: no space, no work directory, killed by its own command. */
function noReportMessage(ran: ExecResult): string {
  const status = ran.kind === 'Exited' ? ` (status ${ran.exitCode})` : '';
  const said = decode(ran.stderr).trim().slice(0, 500);
  const cause =
    ran.kind === 'Exited' && ran.exitCode === CANNOT_BEGIN
      ? 'the sandbox could not begin it'
      : 'its shell ended before it could report';
  return `The command's outcome is unknown: ${cause}${status}.${said ? ` It said: ${said}` : ''} The disk or the memory may be full: remove what you do not need, make it use less, and try again.`;
}
