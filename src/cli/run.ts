import { continuedContents, type EarlierSession, restoreFiles } from '../agent/earlier-session.ts';
import { type LoopResult, runLoop } from '../agent/loop.ts';
import type { Model, Usage } from '../agent/models/port.ts';
import type { ModelPrice } from '../agent/pricing.ts';
import { systemPrompt } from '../agent/prompts.ts';
import type { Tool } from '../agent/tools/port.ts';
import { createRegistry } from '../agent/tools/registry.ts';
import { createSpillCounter } from '../agent/tools/spill.ts';
import type { EffectiveRun } from '../controllers/run/effective.ts';
import { firstMessage, resultOf } from '../controllers/run/loop-report.ts';
import type { RunResult } from '../controllers/run/result.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import { formatDuration } from '../crds/duration.ts';
import type { RunReason } from '../crds/reasons.ts';
import type { Clock } from '../kube/clock.ts';
import type { NoteRef } from '../notes/port.ts';
import { type Sandbox, type SandboxRef, SandboxUnavailableError } from '../sandbox/port.ts';
import type { ObjectStore } from '../store/port.ts';
import type { Progress } from './progress.ts';
import type { RunNote } from './run-note.ts';
import { keepSession, type SessionRecord, transcriptOf } from './run-session.ts';

/** One run outside the operator, with everything it works with. */
export interface RunParts {
  /** `spec.mergeRequest.sha` is set; `metadata.uid` is the run's id. */
  readonly run: AgentRun;
  readonly effective: EffectiveRun;
  readonly model: Model;
  /** Default: list prices. */
  readonly prices?: readonly ModelPrice[];
  readonly prompt: string;
  readonly tools: readonly Tool[];
  /** A new sandbox, ready for commands; asked again when one is lost. Undefined: the run has none. */
  readonly openSandbox: ((signal: AbortSignal) => Promise<Sandbox>) | undefined;
  /** Undefined: nothing is posted. */
  readonly note: RunNote | undefined;
  readonly sessionId: string;
  /** Where the session is saved; undefined: nowhere. */
  readonly sessions: ObjectStore | undefined;
  /** The conversation that this run goes on with, and where its files are. */
  readonly earlier: { readonly session: EarlierSession; readonly store: ObjectStore } | undefined;
  readonly progress: Progress;
  readonly redact: (text: string) => string;
  readonly clock: Clock;
}

/** What a run came to. */
export interface RunEnd {
  readonly reason: RunReason;
  readonly message: string;
  /** Markdown; never empty. */
  readonly text: string;
  /** Whether the text is a report of the model. */
  readonly reported: boolean;
  readonly iterations: number;
  readonly toolCalls: number;
  readonly usage: Usage | undefined;
  /** Absent when unknown. */
  readonly costUsd: number | undefined;
  readonly sandbox: SandboxRef | undefined;
  readonly note: NoteRef | undefined;
  readonly sessionId: string;
  readonly savedTo: string | undefined;
}

/**
 * Runs one analysis to its end and leaves nothing behind: note updated, session saved, sandbox gone. Rejects only
 * when the placeholder cannot be posted; every other end is a value. An abort of `interrupt` ends it as cancelled.
 */
export async function runToEnd(parts: RunParts, interrupt: AbortSignal): Promise<RunEnd> {
  const { progress, note, run } = parts;
  const { project, iid, sha = '' } = run.spec.mergeRequest;
  progress.say(
    `${run.spec.workflowRef.name} on ${project}!${iid} at ${sha.slice(0, 8)} with ${parts.model.name}`,
  );
  const ref = await note?.announce();
  if (ref !== undefined) progress.say(`note: ${ref.url}`);
  const boxes: Boxes = { current: undefined, opened: [] };
  let worked: Worked;
  try {
    worked = await work(parts, boxes, interrupt);
  } catch (error) {
    worked = { result: failed(parts, error, interrupt), end: undefined };
  }
  progress.done();
  try {
    const updated = ref && (await reported(parts, ref, worked.result));
    const savedTo = worked.end && (await saved(parts, worked.end, boxes.current));
    return endOf(parts, worked, { sandbox: boxes.current?.ref, note: updated, savedTo });
  } finally {
    await Promise.all(boxes.opened.map((sandbox) => sandbox.cleanup()));
  }
}

interface Worked {
  readonly result: RunResult;
  /** Undefined when the loop was never reached. */
  readonly end: LoopResult | undefined;
}

interface Boxes {
  current: Sandbox | undefined;
  /** Also those that were lost. */
  readonly opened: Sandbox[];
}

async function work(parts: RunParts, boxes: Boxes, interrupt: AbortSignal): Promise<Worked> {
  const { run, effective, model, progress, earlier, redact } = parts;
  const signal = AbortSignal.any([interrupt, AbortSignal.timeout(effective.timeoutMs)]);
  await open(parts, boxes, signal);
  const files =
    earlier && boxes.current && (await restoreFiles(earlier.store, earlier.session, boxes.current, signal));
  if (files?.problem !== undefined && !signal.aborted) progress.say(files.problem);
  const registry = createRegistry({
    tools: parts.tools,
    redact,
    ...(boxes.current === undefined
      ? {}
      : {
          sandbox: boxes.current,
          spillCounter: createSpillCounter(files?.lastSpill),
          replaceSandbox: async (_lost, abort) => {
            progress.say('the sandbox was lost; making another one');
            return open(parts, boxes, abort);
          },
        }),
  });
  // Who follows a session that is gone on with sees that it is, before the model has answered.
  await follow(parts, []);
  const end = await runLoop({
    model,
    system: systemPrompt({
      workflow: parts.prompt,
      toolNotes: registry.notes(),
      hasSandbox: registry.sandbox !== undefined,
      continuation: earlier !== undefined,
    }),
    contents:
      earlier === undefined
        ? [model.makeUserContent(firstMessage({ spec: run.spec, status: statusOf(run) }))]
        : continuedContents(model, earlier.session, run.spec.message ?? ''),
    tools: registry,
    limits: {
      maxIterations: effective.maxIterations,
      contextTokens: effective.contextTokens,
      ...(effective.budgetUsd === undefined ? {} : { budgetUsd: effective.budgetUsd }),
    },
    signal,
    redact,
    ...(parts.prices && { prices: parts.prices }),
    sink: progress.event,
    checkpoint: async ({ transcript }) => follow(parts, transcript),
    ...(files?.problem === undefined ? {} : { notice: files.problem }),
  });
  return { result: resultOf(run, end, redact), end };
}

async function open(parts: RunParts, boxes: Boxes, signal: AbortSignal): Promise<Sandbox | undefined> {
  if (parts.openSandbox === undefined) return undefined;
  const sandbox = await parts.openSandbox(signal);
  boxes.opened.push(sandbox);
  boxes.current = sandbox;
  parts.progress.say(`sandbox: ${sandbox.ref.kind} ${sandbox.ref.name}`);
  return sandbox;
}

/** Whoever follows the transcript sees each iteration; that it cannot be written is said at the end. */
async function follow(parts: RunParts, entries: LoopResult['transcript']): Promise<void> {
  const { sessions } = parts;
  if (sessions === undefined) return;
  const text = parts.redact(transcriptOf(recordOf(parts), entries));
  await sessions.put('transcript.md', Buffer.from(text)).catch(() => undefined);
}

async function reported(parts: RunParts, ref: NoteRef, result: RunResult): Promise<NoteRef> {
  try {
    return (await parts.note?.report(ref, result)) ?? ref;
  } catch (error) {
    parts.progress.say(`the note was not updated: ${messageOf(error)}`);
    return ref;
  }
}

/** Best effort: the report is out already. */
async function saved(
  parts: RunParts,
  end: LoopResult,
  sandbox: Sandbox | undefined,
): Promise<string | undefined> {
  const { sessions, progress, clock } = parts;
  if (sessions === undefined) return undefined;
  try {
    const kept = await keepSession(sessions, recordOf(parts), end, { sandbox, now: clock.now() });
    for (const { file, message } of kept.missing) progress.say(`${file} was not saved: ${message}`);
    if (kept.context.kind === 'Stored') return sessions.location;
    progress.say('the session was not saved: another run has saved it meanwhile');
  } catch (error) {
    progress.say(`the session was not saved: ${messageOf(error)}`);
  }
  return undefined;
}

function failed(parts: RunParts, error: unknown, interrupt: AbortSignal): RunResult {
  const reason: RunReason = interrupt.aborted
    ? 'Cancelled'
    : error instanceof SandboxUnavailableError
      ? 'SandboxUnavailable'
      : error instanceof Error && error.name === 'TimeoutError'
        ? 'Timeout'
        : error instanceof Error && error.name === 'SandboxLostError'
          ? 'SandboxLost'
          : 'ModelError';
  const message = interrupt.aborted
    ? 'Interrupted before the model was asked.'
    : reason === 'Timeout'
      ? `The run's time, ${formatDuration(parts.effective.timeoutMs)}, was over before the model was asked: it waited for its sandbox.`
      : parts.redact(messageOf(error));
  return { version: 1, reason, message, text: message, reported: false, transcriptExcerpt: '' };
}

function endOf(
  parts: RunParts,
  { result, end }: Worked,
  more: Pick<RunEnd, 'sandbox' | 'note' | 'savedTo'>,
): RunEnd {
  const { reason, message, text, reported: isReport } = result;
  return {
    ...{ reason, message, text, reported: isReport },
    iterations: end?.iterations ?? 0,
    toolCalls: end?.toolCalls ?? 0,
    usage: end?.usage,
    costUsd: end?.costUsd,
    sessionId: parts.sessionId,
    ...more,
  };
}

function recordOf({ sessionId, run, model, earlier, sessions }: RunParts): SessionRecord {
  const { etag, envelope, transcript } = earlier?.session ?? {};
  return {
    ...{ id: sessionId, run, model, earlierUsage: envelope?.usage, earlierTranscript: transcript },
    // Saved somewhere else it replaces nothing.
    ifMatch: sessions === earlier?.store ? etag : undefined,
  };
}

/** The commit stands in the status, as for a run that the operator has admitted. */
const statusOf = ({ spec }: AgentRun): NonNullable<AgentRun['status']> =>
  spec.mergeRequest.sha === undefined ? {} : { sha: spec.mergeRequest.sha };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
