import type { Checkpoint } from '../../../agent/checkpoint.ts';
import {
  continuedContents,
  type EarlierSession,
  lastSpill,
  type RestoredFiles,
  restoreFiles,
} from '../../../agent/earlier-session.ts';
import type { Contents, Model } from '../../../agent/models/port.ts';
import { SandboxLostError } from '../../../sandbox/port.ts';
import { firstMessage } from '../loop-report.ts';
import type { StepContext } from '../step.ts';
import { anotherSandbox } from './another-sandbox.ts';

export interface BeginningInput {
  readonly model: Model;
  /** The conversation that the run goes on with. */
  readonly earlier: EarlierSession | undefined;
  readonly resume: Checkpoint | undefined;
  readonly signal: AbortSignal;
}

export interface Beginning {
  readonly contents: Contents;
  /** The last number in use. */
  readonly spillCounter: number;
  /** Told to the model once. */
  readonly notice?: string;
}

/** What the model begins with. A run that goes on with a session gets its files back first. */
export async function beginning(
  context: StepContext,
  { model, earlier, resume, signal }: BeginningInput,
): Promise<Beginning> {
  const { deps, run } = context;
  if (resume !== undefined) return { contents: [], spillCounter: resume.spillCounter };
  if (run.spec.sessionRef === undefined)
    return { contents: [model.makeUserContent(firstMessage(run))], spillCounter: 0 };
  if (earlier === undefined)
    throw new Error(`${deps.store.location} does not hold the session that was kept for this run any more`);
  const contents = continuedContents(model, earlier, deps.redact(run.spec.message ?? ''));
  const files = await filesOf(context, earlier, signal);
  if (files.problem === undefined) return { contents, spillCounter: files.lastSpill };
  if (!signal.aborted) deps.events.record(run, 'Warning', 'FilesNotRestored', files.problem);
  return { contents, spillCounter: files.lastSpill, notice: files.problem };
}

/** Brings the session's files into the run's sandbox. One that lingered has them; when it is lost, the archive has. */
async function filesOf(
  context: StepContext,
  earlier: EarlierSession,
  signal: AbortSignal,
): Promise<RestoredFiles> {
  const { deps, run, local } = context;
  const uid = run.metadata.uid ?? '';
  const sandbox = local.sandboxes.get(uid);
  if (sandbox === undefined) return { problem: undefined, lastSpill: 0 };
  if (!local.reclaimed.has(uid)) return restoreFiles(deps.store, earlier, sandbox, signal);
  try {
    return { problem: undefined, lastSpill: await lastSpill(sandbox, signal) };
  } catch (error) {
    if (!(error instanceof SandboxLostError)) return restoreFiles(deps.store, earlier, sandbox, signal);
    local.reclaimed.delete(uid);
    const another = await anotherSandbox(context, signal).catch(() => undefined);
    return restoreFiles(deps.store, earlier, another ?? sandbox, signal);
  }
}
