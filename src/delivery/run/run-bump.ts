import { type DeliverParts, type DeliverySettings, deliver } from '../deliver.ts';
import { nextAttempt } from '../edits/attempts.ts';
import { type Bump, type BumpReader, type BumpWriter, TreeUnavailableError } from '../port.ts';
import { Decision, decisionOf, escalationFor, filesOf } from './decision.ts';

export interface BumpRun {
  /** Of the AgentRun; the commit carries it, so that it is made once. */
  readonly uid: string;
  readonly workflow: string;
  readonly at: { readonly project: string; readonly iid: number };
  /** Head that the run was made for. */
  readonly sha: string;
  readonly settings: DeliverySettings & {
    readonly maxAttempts: number;
    readonly needsHumanLabel: string;
    readonly statusName: string;
  };
}

/** Of the labels that count attempts. */
const BRAND = 'hummingbird';

/** One value of a run that is kept once: the first one wins, and is what is returned. */
export interface Kept {
  read(): Promise<string | undefined>;
  keep(text: string): Promise<string>;
}

export interface BumpRunParts extends DeliverParts {
  readonly reader: BumpReader;
  readonly writer: BumpWriter;
  readonly decision: Kept;
}

export type BumpEnd =
  | {
      readonly kind: 'Done';
      readonly outcome: Decision['kind'];
      /** Markdown of the note. */
      readonly text: string;
      readonly message: string;
      /** Commit that was pushed. */
      readonly commit?: string;
    }
  /** People have it: the label says so. Nothing was looked at. */
  | { readonly kind: 'Left'; readonly message: string }
  /** The branch has another head by now, which has a run of its own. */
  | { readonly kind: 'Superseded'; readonly message: string }
  | { readonly kind: 'Refused'; readonly message: string };

/**
 * One run on one bump, from its facts to whatever is written. May be killed at any point and be called again: what
 * was decided is kept before it is acted on, and each act is one that is there already or is done now. Every way out
 * but `Refused` leaves a commit status.
 */
export async function runBump(run: BumpRun, parts: BumpRunParts, signal?: AbortSignal): Promise<BumpEnd> {
  const { settings } = run;
  const reading = await parts.reader.bump(run.at, signal);
  if (reading.kind === 'Refused') return reading;
  const { bump } = reading;
  const kept = await parts.decision.read();
  if (kept === undefined) {
    if (bump.headSha !== run.sha) return superseded(run, bump);
    if (bump.labels.includes(settings.needsHumanLabel)) {
      const message = `the label ${settings.needsHumanLabel} is set: people have it`;
      await setStatus(parts.writer, run, bump, 'success', message, signal);
      return { kind: 'Left', message };
    }
    await setStatus(parts.writer, run, bump, 'pending', 'reading what the bump changes', signal);
  }
  const decision = Decision.parse(
    JSON.parse(kept ?? (await parts.decision.keep(JSON.stringify(await decide(run, bump, parts, signal))))),
  );
  return await act(run, { ...bump, headSha: decision.headSha }, decision, parts, signal);
}

async function decide(
  run: BumpRun,
  bump: Bump,
  parts: BumpRunParts,
  signal: AbortSignal | undefined,
): Promise<Decision> {
  const { settings } = run;
  const attempt = nextAttempt(bump.labels, { brand: BRAND, maxAttempts: settings.maxAttempts });
  if (attempt.kind === 'Exhausted') {
    const { made } = attempt;
    const why = `It was tried ${made === 1 ? 'once' : `${made} times`} to repair this merge request, which is as often as is allowed`;
    return escalationFor(why, bump.headSha, made);
  }
  try {
    const base = await parts.reader.tree(bump.project, bump.baseSha, signal);
    const head = await parts.reader.tree(bump.project, bump.headSha, signal);
    return decisionOf(
      await deliver({ bump, base, head, settings }, parts, signal),
      bump.headSha,
      attempt.number,
    );
  } catch (error) {
    if (!(error instanceof TreeUnavailableError)) throw error;
    return escalationFor(error.message.replace(/\.+$/, ''), bump.headSha, attempt.number);
  }
}

async function act(
  run: BumpRun,
  bump: Bump,
  decision: Decision,
  parts: BumpRunParts,
  signal: AbortSignal | undefined,
): Promise<BumpEnd> {
  const { writer } = parts;
  if (decision.kind === 'Push') return await push(run, bump, decision, writer, signal);
  if (decision.calls) await writer.addLabels(bump, [run.settings.needsHumanLabel], signal);
  await setStatus(writer, run, bump, 'success', decision.status, signal);
  return { kind: 'Done', outcome: decision.kind, text: decision.text, message: decision.status };
}

async function push(
  run: BumpRun,
  bump: Bump,
  decision: Decision,
  writer: BumpWriter,
  signal: AbortSignal | undefined,
): Promise<BumpEnd> {
  if (bump.fork)
    return await notPushed(
      run,
      bump,
      decision,
      'the merge request comes from a fork, whose branch is not written',
      writer,
      signal,
    );
  const trailer = `Hummingbird-Run: ${run.uid}`;
  let commit = await writer.ownCommit(bump, trailer, signal);
  let onto: string | undefined;
  if (commit === undefined) {
    // Before the push, so that a push that nobody saw end is counted too.
    await writer.addLabels(bump, [`${BRAND}/attempt-${decision.attempt}`], signal);
    const message = `${decision.status.replace(/^fixed: /, 'Repair the bump: ')}\n\n${trailer}\n`;
    const outcome = await writer.commit(
      bump,
      { message, files: filesOf(decision), expectedHead: decision.headSha },
      signal,
    );
    if (outcome.kind === 'Moved') return superseded(run, bump, outcome.message);
    if (outcome.kind === 'Refused')
      return await notPushed(
        run,
        bump,
        decision,
        `GitLab answers ${outcome.status} to the push: ${outcome.message}`,
        writer,
        signal,
      );
    ({ sha: commit, onto } = outcome);
  }
  // On what was pushed: a status of the head before it would be on no head any more.
  await setStatus(writer, run, { ...bump, headSha: commit }, 'success', decision.status, signal);
  return {
    kind: 'Done',
    outcome: 'Push',
    text: `${decision.text}\n\nPushed as \`${commit.slice(0, 12)}\`, attempt ${decision.attempt} of ${run.settings.maxAttempts}.${onto === undefined ? '' : overtaken(onto)}`,
    message: decision.status,
    commit,
  };
}

/** GitLab cannot be told to commit on one head only. */
const overtaken = (onto: string): string =>
  `\n\n**It stands on \`${onto.slice(0, 12)}\`**, a push of other files that came in the same moment: each was checked by itself, and nobody has looked at both.`;

/** The repair was found and stays a proposal: a person can make it. */
async function notPushed(
  run: BumpRun,
  bump: Bump,
  decision: Decision,
  why: string,
  writer: BumpWriter,
  signal: AbortSignal | undefined,
): Promise<BumpEnd> {
  await writer.addLabels(bump, [run.settings.needsHumanLabel], signal);
  const message = `needs a person: not pushed, since ${why}`.slice(0, 140);
  await setStatus(writer, run, bump, 'success', message, signal);
  const text = `${decision.text.replace(/^### Fixed$/m, '### Needs a person')}\n\n**Nothing was pushed: ${why}.**`;
  return { kind: 'Done', outcome: 'Escalate', text, message };
}

const superseded = ({ sha }: BumpRun, { headSha }: Bump, why?: string): BumpEnd => ({
  kind: 'Superseded',
  message: why ?? `the branch is at ${headSha.slice(0, 12)}, and this run looks at ${sha.slice(0, 12)}`,
});

const setStatus = (
  writer: BumpWriter,
  { settings }: BumpRun,
  bump: Bump,
  state: 'pending' | 'success',
  description: string,
  signal: AbortSignal | undefined,
): Promise<void> => writer.setStatus(bump, { state, name: settings.statusName, description }, signal);
