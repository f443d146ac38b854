import { Buffer } from 'node:buffer';
import { SCRATCH, SPILL_DIR } from '../../sandbox/port.ts';
import { CUT_MARGIN_BYTES, HEAD_BYTES, MAX_INLINE_BYTES, TAIL_BYTES } from './spill.ts';

/**
 * Longest command that is part of the script; a longer one comes through stdin. Linux takes 128 KiB per argument,
 * but an exec's command travels in a URL, and proxies on its way often stop at some 8 KiB.
 */
export const MAX_INLINE_COMMAND_BYTES = 2 * 1024;

/** Lines of a larger file are not counted: reading it again would take longer than is left of the command's time. */
const MAX_COUNTED_BYTES = 256 * 1024 * 1024;

/**
 * No file that a command writes grows beyond this, its outputs included. A sandbox has some 2 GiB of disk, and a
 * pod that uses more is evicted with everything in it: both outputs of a runaway command leave half of that.
 */
export const MAX_FILE_BYTES = 512 * 1024 * 1024;

/** What `ulimit -f` counts in, in every POSIX shell. */
const ULIMIT_BLOCK_BYTES = 512;

export interface CapturedStream {
  readonly bytes: number;
  /** Undefined when not counted: for inline streams, and for those over MAX_COUNTED_BYTES. */
  readonly lines: number | undefined;
  /** The whole stream when it is at most MAX_INLINE_BYTES, else HEAD_BYTES and a margin. */
  readonly head: Uint8Array;
  /** TAIL_BYTES and a margin; empty when `head` is the whole stream. */
  readonly tail: Uint8Array;
  /** True when the file was kept in the sandbox. */
  readonly kept: boolean;
}

export interface CapturedRun {
  /** Undefined in a report made after a timeout. */
  readonly exitCode: number | undefined;
  readonly stdout: CapturedStream;
  readonly stderr: CapturedStream;
  /** Not a byte more could be written afterwards: output may be missing. */
  readonly diskFull: boolean;
}

export interface CaptureFiles {
  /** Random: tells our own frame from anything else on the exec's output. */
  readonly nonce: string;
  readonly stdoutFile: string;
  readonly stderrFile: string;
  /** A multiple of 512; see MAX_FILE_BYTES. */
  readonly maxFileBytes: number;
}

/**
 * Runs the model's command with both outputs going to files in the sandbox, then reports sizes and previews in
 * one small frame on stdout. So the operator's memory does not depend on what a command prints. Files rather
 * than pipes: a background process that keeps its output open does not hold up the answer. A process that writes
 * beyond the largest size is killed by the kernel (SIGXFSZ, status 153); its shell goes on.
 */
export function captureScript(command: string, files: CaptureFiles): { script: string; stdin?: Uint8Array } {
  const long = Buffer.byteLength(command) > MAX_INLINE_COMMAND_BYTES;
  const commandFile = `${SPILL_DIR}/.command-${files.nonce}`;
  const run = long ? `sh ${quote(commandFile)}` : `sh -c ${quote(command)}`;
  const limit = `ulimit -f ${Math.floor(files.maxFileBytes / ULIMIT_BLOCK_BYTES)}`;
  const script = [
    `mkdir -p ${quote(SPILL_DIR)} && cd ${quote(SCRATCH)} || exit 125`,
    ...(long ? [`cat > ${quote(commandFile)} || exit 125`] : []),
    // A shell that may not set the limit already has a lower one.
    `(${limit} 2>/dev/null; exec ${run}) >${quote(files.stdoutFile)} 2>${quote(files.stderrFile)} </dev/null`,
    'status=$?',
    ...(long ? [`rm -f ${quote(commandFile)}`] : []),
    reportScript(files),
  ].join('\n');
  return long ? { script, stdin: Buffer.from(command) } : { script };
}

/** The report alone, for what a command had written when its time was up. */
export function reportScript({ nonce, stdoutFile, stderrFile }: Omit<CaptureFiles, 'maxFileBytes'>): string {
  const probe = `${SPILL_DIR}/.probe-${nonce}`;
  const window = { head: HEAD_BYTES + CUT_MARGIN_BYTES, tail: TAIL_BYTES + CUT_MARGIN_BYTES };
  return `encode() { base64 | tr -d '\\n'; echo; }
report() {
  name=$1 file=$2
  [ -f "$file" ] || : >"$file"
  size=$(wc -c <"$file") lines=-
  if [ "$size" -gt ${MAX_INLINE_BYTES} ] && [ "$size" -le ${MAX_COUNTED_BYTES} ]; then lines=$(wc -l <"$file"); fi
  echo "$name" $size $lines
  if [ "$size" -le ${MAX_INLINE_BYTES} ]; then head -c ${MAX_INLINE_BYTES} "$file" | encode; echo; rm -f "$file"
  else head -c ${window.head} "$file" | encode; tail -c ${window.tail} "$file" | encode; fi
}
mkdir -p ${quote(SPILL_DIR)}
echo "begin ${nonce} \${status:--}"
report stdout ${quote(stdoutFile)}
report stderr ${quote(stderrFile)}
full=
{ printf x >${quote(probe)}; } 2>/dev/null || full=' full'
rm -f ${quote(probe)}
echo "end ${nonce}$full"`;
}

/** Undefined when the text is not exactly one frame with this nonce. */
export function parseReport(output: Uint8Array, nonce: string): CapturedRun | undefined {
  const lines = Buffer.from(output).toString('latin1').split('\n');
  const begin = lines.findIndex((line) => line.startsWith(`begin ${nonce} `));
  const [start, outLine, outHead, outTail, errLine, errHead, errTail, end, ...rest] = lines.slice(begin);
  const diskFull = end === `end ${nonce} full`;
  if (begin < 0 || !(diskFull || end === `end ${nonce}`) || rest.join('') !== '') return undefined;
  const status = /^begin \S+ (-|\d{1,3})$/.exec(start ?? '')?.[1];
  const stdout = parseStream('stdout', outLine, outHead, outTail);
  const stderr = parseStream('stderr', errLine, errHead, errTail);
  if (status === undefined || !stdout || !stderr) return undefined;
  return { exitCode: status === '-' ? undefined : Number(status), stdout, stderr, diskFull };
}

/** For `sh`: between single quotes nothing is special but the quote itself. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function parseStream(
  name: string,
  counts: string | undefined,
  head: string | undefined,
  tail: string | undefined,
): CapturedStream | undefined {
  const match = new RegExp(`^${name} (\\d{1,16}) (-|\\d{1,16})$`).exec(counts ?? '');
  if (!match || head === undefined || tail === undefined || !BASE64.test(head) || !BASE64.test(tail))
    return undefined;
  const bytes = Number(match[1]);
  return {
    bytes,
    lines: match[2] === '-' ? undefined : Number(match[2]),
    head: Buffer.from(head, 'base64'),
    tail: Buffer.from(tail, 'base64'),
    kept: bytes > MAX_INLINE_BYTES,
  };
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
