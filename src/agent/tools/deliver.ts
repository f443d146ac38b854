import type { Sandbox } from '../../sandbox/port.ts';
import type { Redact } from '../redaction.ts';
import type { ToolOutput } from './port.ts';
import {
  CUT_MARGIN_BYTES,
  countLines,
  decode,
  HEAD_BYTES,
  headOf,
  MAX_INLINE_BYTES,
  type SpillCounter,
  spillPath,
} from './spill.ts';

export type Result = Readonly<Record<string, unknown>>;

export interface Delivery {
  readonly toolName: string;
  /** Merged into every answer of the tool. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Undefined in runs without a sandbox: then previews are all there is. */
  readonly sandbox: Sandbox | undefined;
  readonly counter: SpillCounter;
  readonly redact: Redact;
  readonly signal: AbortSignal;
}

/**
 * What the model gets of a data source's output: the output itself when it is at most MAX_INLINE_BYTES, else the
 * name of the sandbox file that holds it, with a preview of text. Constant memory for streams.
 */
export async function deliver(output: ToolOutput, delivery: Delivery): Promise<Result> {
  switch (output.kind) {
    case 'Error':
      return { error: output.message };
    case 'Text':
      return deliverText(Buffer.from(output.text), output.suffix ?? '.txt', delivery);
    case 'Json':
      return deliverJson(output.value, delivery);
    case 'Binary':
      return deliverBinary(output.bytes, delivery);
    case 'Stream':
      return output.binary ? deliverBinaryStream(output, delivery) : deliverTextStream(output, delivery);
    default:
      return output satisfies never;
  }
}

/** All of an output to a path that the caller chose (and checked): never a preview. */
export async function deliverTo(
  path: string,
  output: ToolOutput,
  delivery: Delivery & { readonly sandbox: Sandbox },
): Promise<Result> {
  const { sandbox, signal, metadata } = delivery;
  if (output.kind === 'Error') return { error: output.message };
  if (output.kind === 'Stream') {
    const source = watch(output);
    const written = await sandbox.streamToFile(path, source.chunks(), { signal });
    const lines = output.binary ? {} : { lines: written.lines };
    return { path, bytes: written.bytes, ...lines, ...source.remarks(), ...metadata };
  }
  const bytes = bytesOf(output);
  await sandbox.writeFile(path, bytes, { signal });
  const lines = output.kind === 'Binary' ? {} : { lines: countLines(bytes) };
  return { path, bytes: bytes.length, ...lines, ...metadata };
}

type StreamOutput = Extract<ToolOutput, { kind: 'Stream' }>;

function bytesOf(output: Exclude<ToolOutput, StreamOutput | { kind: 'Error' }>): Uint8Array {
  switch (output.kind) {
    case 'Text':
      return Buffer.from(output.text);
    case 'Json':
      return Buffer.from(`${JSON.stringify(output.value, undefined, 2)}\n`);
    case 'Binary':
      return output.bytes;
    default:
      return output satisfies never;
  }
}

async function deliverText(bytes: Uint8Array, suffix: string, delivery: Delivery): Promise<Result> {
  const { metadata, redact } = delivery;
  if (bytes.length <= MAX_INLINE_BYTES) return { output: redact(decode(bytes)), ...metadata };
  return keep(bytes, suffix, delivery);
}

async function deliverJson(value: Result, delivery: Delivery): Promise<Result> {
  if (Buffer.byteLength(JSON.stringify(value)) <= MAX_INLINE_BYTES) return { ...value, ...delivery.metadata };
  // Indented, so that grep and sed find lines to work on.
  return keep(bytesOf({ kind: 'Json', value }), '.json', delivery);
}

async function keep(bytes: Uint8Array, suffix: string, delivery: Delivery): Promise<Result> {
  const { sandbox, counter, toolName, redact, metadata, signal } = delivery;
  if (!sandbox) return { preview: headOf(bytes, redact), truncated: true, bytes: bytes.length, ...metadata };
  const path = spillPath(`${toolName}_${counter.next()}`, suffix);
  await sandbox.writeFile(path, bytes, { signal });
  const sizes = { bytes: bytes.length, lines: countLines(bytes) };
  return { saved_to: path, ...sizes, preview: headOf(bytes, redact), ...metadata };
}

async function deliverBinary(bytes: Uint8Array, delivery: Delivery): Promise<Result> {
  const { sandbox, counter, toolName, metadata, signal } = delivery;
  if (!sandbox) return { error: WITHOUT_SANDBOX, bytes: bytes.length, ...metadata };
  const path = spillPath(`${toolName}_${counter.next()}`, '.bin');
  await sandbox.writeFile(path, bytes, { signal });
  return { saved_to: path, bytes: bytes.length, ...metadata };
}

async function deliverBinaryStream(output: StreamOutput, delivery: Delivery): Promise<Result> {
  const { sandbox, counter, toolName, metadata, signal } = delivery;
  const source = watch(output);
  if (!sandbox) return { error: WITHOUT_SANDBOX, bytes: await sizeOf(source.chunks()), ...metadata };
  const path = spillPath(`${toolName}_${counter.next()}`, output.suffix);
  const { bytes } = await sandbox.streamToFile(path, source.chunks(), { signal });
  return { saved_to: path, bytes, ...source.remarks(), ...metadata };
}

async function deliverTextStream(output: StreamOutput, delivery: Delivery): Promise<Result> {
  const { sandbox, counter, toolName, redact, metadata, signal } = delivery;
  const source = watch(output);
  const chunks = source.chunks();
  const { start, ended } = await readStart(chunks);
  if (ended) return { output: redact(decode(start)), ...source.remarks(), ...metadata };
  const preview = headOf(start, redact);
  if (!sandbox) {
    await chunks.return(undefined);
    return { preview, truncated: true, ...noteOf(output), ...metadata };
  }
  const path = spillPath(`${toolName}_${counter.next()}`, output.suffix);
  const { bytes, lines } = await sandbox.streamToFile(path, joined(start, chunks), { signal });
  return { saved_to: path, bytes, lines, preview, ...source.remarks(), ...metadata };
}

/** Enough bytes to know that a stream is too long to be shown whole, and for its preview. */
async function readStart(
  chunks: AsyncIterator<Uint8Array>,
): Promise<{ readonly start: Uint8Array; readonly ended: boolean }> {
  const parts: Uint8Array[] = [];
  let size = 0;
  while (size <= Math.max(MAX_INLINE_BYTES, HEAD_BYTES + CUT_MARGIN_BYTES)) {
    const next = await chunks.next();
    if (next.done) return { start: Buffer.concat(parts), ended: true };
    parts.push(next.value);
    size += next.value.length;
  }
  return { start: Buffer.concat(parts), ended: false };
}

async function* joined(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield start;
  yield* rest;
}

/** Traffic that the size of an output is worth, when nobody can have the output itself. */
const MAX_COUNTED_BYTES = 1024 * 1024;

async function sizeOf(chunks: AsyncIterable<Uint8Array>): Promise<number | string> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MAX_COUNTED_BYTES) return `more than ${MAX_COUNTED_BYTES}`;
  }
  return bytes;
}

/**
 * A source that breaks off ends its stream instead of failing the write: what came is kept, and what is missing
 * is said. A failing sandbox still fails, since its errors do not pass through here.
 */
function watch(output: StreamOutput): {
  chunks(): AsyncGenerator<Uint8Array, undefined>;
  remarks(): { readonly incomplete?: string; readonly note?: string };
} {
  let broken: string | undefined;
  return {
    async *chunks() {
      try {
        yield* output.chunks;
      } catch (error) {
        broken = `The source broke off: ${error instanceof Error ? error.message : String(error)}`;
      }
      return undefined;
    },
    remarks() {
      const incomplete = broken ?? output.incomplete?.();
      return { ...(incomplete === undefined ? {} : { incomplete }), ...noteOf(output) };
    },
  };
}

function noteOf(output: StreamOutput): { readonly note?: string } {
  const note = output.note?.();
  return note === undefined ? {} : { note };
}

const WITHOUT_SANDBOX = 'This output is binary and this run has no sandbox to keep it in.';
