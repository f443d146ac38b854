import { createHash } from 'node:crypto';
import type { AgentRun } from '../../crds/agent-run.ts';
import { APPROVAL_ARGUMENTS_MAX, APPROVALS_MAX, type Approval, verdictOn } from '../../crds/approval.ts';
import type { AskPermission, Permission, PermissionQuestion } from '../../sources/port.ts';

/** A call that the loop holds back until somebody has answered. */
export type OpenQuestion = Pick<Approval, 'id' | 'tool' | 'arguments' | 'digest'> & {
  /** All arguments, as people are shown them. */
  readonly allArguments: string;
};

/**
 * The questions of one agent loop. It only asks and waits; the reconciler writes each into the status, tells people,
 * and hands the answer back. What an earlier holder has asked is not asked again.
 */
export class Questions {
  readonly #runUid: string;
  readonly #redact: (text: string) => string;
  readonly #onChange: () => void;
  readonly #known: Map<string, Approval>;
  readonly #open = new Map<string, { readonly question: OpenQuestion; settle(answer: Permission): void }>();
  /** Monotonic time of a write of the status that the note was not edited after yet; see `tellApprovals`. */
  announcedMs: number | undefined;

  constructor(options: {
    readonly runUid: string;
    /** Of the status when the loop started. */
    readonly known: readonly Approval[];
    redact(text: string): string;
    /** Called when something was asked. */
    onChange(): void;
  }) {
    this.#runUid = options.runUid;
    this.#redact = (text) => options.redact(text);
    this.#onChange = () => options.onChange();
    this.#known = new Map(options.known.map((approval) => [approval.id, approval]));
  }

  /** Those that wait. */
  get open(): readonly OpenQuestion[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  readonly ask: AskPermission = async (asked, signal) => {
    signal.throwIfAborted();
    const question = questionOf(this.#runUid, asked, this.#redact);
    const known = this.#known.get(question.id);
    if (known !== undefined && known.digest !== question.digest) return permissionOf('Denied', question, '');
    if (known !== undefined && known.state !== 'Waiting')
      return permissionOf(known.state, question, known.by ?? '');
    if (known === undefined && this.#known.size >= APPROVALS_MAX) return tooMany(question);
    if (question.allArguments.length > READABLE_MAX) return tooLong(question);
    this.#known.set(question.id, known ?? remembered(question, 'Waiting'));
    return this.#wait(question, signal);
  };

  /** Hands the answer to the loop; nothing happens when the question is not open. */
  settle({ id, state, by }: Approval): void {
    const open = this.#open.get(id);
    if (open === undefined || state === 'Waiting') return;
    this.#known.set(id, { ...remembered(open.question, state), ...(by !== undefined && { by }) });
    open.settle(permissionOf(state, open.question, by ?? ''));
  }

  async #wait(question: OpenQuestion, signal: AbortSignal): Promise<Permission> {
    const { promise, resolve, reject } = Promise.withResolvers<Permission>();
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#open.set(question.id, { question, settle: resolve });
    this.#onChange();
    try {
      return await promise;
    } finally {
      this.#open.delete(question.id);
      signal.removeEventListener('abort', stop);
    }
  }
}

/** The digest holds run, place, tool and arguments: an answer is for one call, and for no other. */
function questionOf(
  runUid: string,
  { tool, arguments: args, place }: PermissionQuestion,
  redact: (text: string) => string,
): OpenQuestion {
  const digest = createHash('sha256')
    .update(JSON.stringify([runUid, place, tool, args]))
    .digest('hex');
  const allArguments = ascii(redact(JSON.stringify(args)));
  return { id: digest.slice(0, 12), tool, arguments: cut(allArguments), digest, allArguments };
}

/** As it is compared with later: for itself, not for people. */
const remembered = (
  { id, tool, arguments: args, digest }: OpenQuestion,
  state: Approval['state'],
): Approval => ({
  ...{ id, tool, arguments: args, digest, state },
  requestTime: '',
});

/** Whoever approves a call has read all of it. */
const READABLE_MAX = 10_000;

/** What looks like another character, or like none, is seen for what it is. */
const ascii = (json: string): string =>
  json.replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

const cut = (text: string): string =>
  text.length <= APPROVAL_ARGUMENTS_MAX ? text : `${text.slice(0, APPROVAL_ARGUMENTS_MAX - 3)}...`;

const GO_ON = 'Do not call it again for the same; go on without, and say in your answer what is missing.';

function permissionOf(
  state: Exclude<Approval['state'], 'Waiting'>,
  { tool }: OpenQuestion,
  by: string,
): Permission {
  switch (state) {
    case 'Approved':
      return { kind: 'Approved' };
    case 'Denied':
      return {
        kind: 'Refused',
        message: `Not executed: ${by || 'a person'} denied this call of ${tool}. ${GO_ON}`,
      };
    case 'Expired':
      return {
        kind: 'Refused',
        message: `Not executed: nobody approved this call of ${tool} in time. ${GO_ON}`,
      };
    default:
      return state satisfies never;
  }
}

const tooMany = ({ tool }: OpenQuestion): Permission => ({
  kind: 'Refused',
  message: `Not executed: ${tool} needs approval, and this run has asked for ${APPROVALS_MAX} already. ${GO_ON}`,
});

const tooLong = ({ tool, allArguments }: OpenQuestion): Permission => ({
  kind: 'Refused',
  message: `Not executed: ${tool} needs approval, and its arguments are longer (${allArguments.length} characters) than the ${READABLE_MAX} that people are asked to read. Make them shorter, or go on without.`,
});

/** The calls that wait, with all of their arguments where this process knows them. */
export function waitingCalls(
  { status }: AgentRun,
  questions: Questions | undefined,
): readonly Pick<Approval, 'id' | 'tool' | 'arguments'>[] {
  const open = new Map(questions?.open.map((question) => [question.id, question.allArguments]));
  return (status?.approvals ?? [])
    .filter(({ state }) => state === 'Waiting')
    .map(({ id, tool, arguments: short }) => ({ id, tool, arguments: open.get(id) ?? short }));
}

/** What is to be done about a running loop's questions; undefined: nothing, now. */
export type ApprovalNeed =
  /** An answer is there that the loop has not got. */
  | 'Settle'
  /** A question that the status does not hold. */
  | 'Ask'
  /** The note says something else than the status. */
  | 'Tell';

export interface ApprovalsView {
  readonly need: ApprovalNeed | undefined;
  /** Somebody is waited for. */
  readonly waiting: boolean;
}

/** Pure. */
export function approvalsView(
  run: AgentRun,
  open: readonly OpenQuestion[],
  publishesNote: boolean,
): ApprovalsView {
  const written = run.status?.approvals ?? [];
  const stateOf = (id: string) => written.find((one) => one.id === id)?.state;
  const waiting = open.filter(({ id }) => stateOf(id) === 'Waiting');
  return { need: need(), waiting: waiting.length > 0 };

  function need(): ApprovalNeed | undefined {
    const answered = waiting.some(({ id }) => verdictOn(run, id) !== undefined);
    const decided = open.some(({ id }) => !['Waiting', undefined].includes(stateOf(id)));
    if (answered || decided) return 'Settle';
    if (open.some(({ id }) => stateOf(id) === undefined)) return 'Ask';
    const untold = written.some(({ told }) => told !== true);
    return untold && publishesNote && run.status?.note !== undefined ? 'Tell' : undefined;
  }
}

/** What is left of a run's time for the model to answer with what it has. */
const RESERVE_MS = 2 * 60_000;

/** Milliseconds that an answer is still waited for; 0 or less: the call is refused. */
export function msToAnswer({ status }: AgentRun, timeoutMs: number, now: Date): number {
  const start = Date.parse(status?.startTime ?? '') || now.getTime();
  return start + timeoutMs - Math.min(RESERVE_MS, timeoutMs / 5) - now.getTime();
}
