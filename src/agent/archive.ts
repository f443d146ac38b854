import { type Sandbox, SCRATCH } from '../sandbox/port.ts';
import type { ObjectStore, PutResult } from '../store/port.ts';
import { decode } from './tools/spill.ts';

/** Packing a full work directory of some GiB takes minutes on a slow node. */
const ARCHIVE_TIMEOUT_MS = 10 * 60_000;
/** Made beside the work directory, then moved in: `readFile` reads below SCRATCH only, and tar must not meet it. */
const PACKED = `${SCRATCH}/.session.tar.gz`;
const BEING_PACKED = `${SCRATCH}/../.session.tar.gz`;

/**
 * Packs the work directory inside the sandbox and streams the archive to the store in constant memory. It is
 * never opened here: it only carries bytes from one sandbox to the next. Throws when it cannot be packed.
 */
export async function archiveSandbox(
  sandbox: Sandbox,
  store: ObjectStore,
  key: string,
  options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
): Promise<PutResult> {
  const { signal, timeoutMs = ARCHIVE_TIMEOUT_MS } = options;
  const abort = signal === undefined ? {} : { signal };
  await run(sandbox, PACK, 'packed', { ...abort, timeoutMs });
  try {
    return await store.put(key, sandbox.readFile(PACKED, abort), {
      contentType: 'application/gzip',
      ...abort,
    });
  } finally {
    await sandbox.exec(`rm -f ${PACKED}`, { timeoutMs: 10_000 }).catch(() => undefined);
  }
}

/** Unpacks an earlier archive in the sandbox. Throws when it cannot be unpacked. */
export async function restoreSandbox(
  sandbox: Sandbox,
  archive: AsyncIterable<Uint8Array>,
  options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
): Promise<void> {
  const { signal, timeoutMs = ARCHIVE_TIMEOUT_MS } = options;
  const abort = signal === undefined ? {} : { signal };
  const result = await sandbox.streamExec(UNPACK, archive, { ...abort, timeoutMs });
  check(result, 'unpacked', timeoutMs);
}

/** Status 1 of GNU tar says that a file changed while it was read: a background process; the archive is whole. */
const PACK = `cd ${SCRATCH}/.. && rm -f ${PACKED} && { tar czf ${BEING_PACKED} data; [ $? -le 1 ]; } && mv ${BEING_PACKED} ${PACKED}`;
const UNPACK = `cd ${SCRATCH}/.. && tar xzf -`;

type Finished = Awaited<ReturnType<Sandbox['exec']>>;

async function run(
  sandbox: Sandbox,
  command: string,
  verb: string,
  options: { readonly signal?: AbortSignal; readonly timeoutMs: number },
): Promise<void> {
  check(await sandbox.exec(command, options), verb, options.timeoutMs);
}

function check(result: Finished, verb: string, timeoutMs: number): void {
  if (result.kind === 'Exited' && result.exitCode === 0) return;
  const why =
    result.kind === 'TimedOut'
      ? `not done within ${timeoutMs / 1000} s`
      : `status ${result.exitCode}: ${decode(result.stderr).trim().slice(0, 500)}`;
  throw new Error(`The sandbox's files could not be ${verb}: ${why}`);
}
