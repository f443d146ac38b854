import type { MergeRequestFacts, MergeRequestRef, NoteOutcome } from '../notes/port.ts';
import type { Facts, Question } from './decide/decision.ts';
import type { EventUser } from './events/shapes.ts';
import type { BridgeGitLab } from './port.ts';

/**
 * GitLab gave no answer that a decision can rest on; the message is left for another delivery, and nothing more is
 * received until GitLab answers again.
 */
export class GitLabAwayError extends Error {
  override readonly name = 'GitLabAwayError';
}

/** The error to throw on for a failed call to GitLab: what waiting may cure concerns every message, the rest this one. */
export function gitlabFailure(cause: unknown, signal: AbortSignal, where: string): unknown {
  const retryable = cause instanceof Error && 'retryable' in cause && cause.retryable === true;
  if (!retryable && !signal.aborted) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new GitLabAwayError(`${where}: GitLab does not answer: ${message}`, { cause });
}

/** Answers a decision's questions about one merge request, each once however often it is asked. */
export class Observer {
  readonly #gitlab: BridgeGitLab;
  readonly #at: MergeRequestRef;
  readonly #signal: AbortSignal;
  #mergeRequest: Promise<NoteOutcome<MergeRequestFacts>> | undefined;

  constructor(gitlab: BridgeGitLab, at: MergeRequestRef, signal: AbortSignal) {
    this.#gitlab = gitlab;
    this.#at = at;
    this.#signal = signal;
  }

  /** Throws GitLabAwayError, and what GitLab's adapter throws otherwise. */
  async ask(known: Facts, questions: readonly Question[]): Promise<Facts> {
    const answers = await Promise.all(questions.map((question) => this.#answer(question))).catch(
      (cause: unknown) => {
        throw gitlabFailure(cause, this.#signal, `${this.#at.project}!${this.#at.iid}`);
      },
    );
    const access = answers.flatMap((answer) => [...(answer.access ?? [])]);
    return Object.assign({}, known, ...answers, { access: new Map([...(known.access ?? []), ...access]) });
  }

  async #answer(question: Question): Promise<Facts> {
    const { mergeRequests, threads } = this.#gitlab;
    switch (question.kind) {
      case 'Self':
        return { self: await threads.botUserId(this.#signal) };
      case 'Access': {
        const { userId } = question;
        const level = await mergeRequests.accessLevel(this.#at.project, userId, this.#signal);
        return { access: new Map([[userId, level]]) };
      }
      case 'MergeRequest':
        return { mergeRequest: await this.#facts() };
      case 'PushAuthor':
        return { pushAuthor: await this.#pushAuthor() };
      case 'Thread':
        return { thread: await threads.read(this.#at, question.discussionId, this.#signal) };
      default:
        return question satisfies never;
    }
  }

  #facts(): Promise<NoteOutcome<MergeRequestFacts>> {
    this.#mergeRequest ??= this.#gitlab.mergeRequests.get(this.#at, this.#signal);
    return this.#mergeRequest;
  }

  async #pushAuthor(): Promise<NoteOutcome<EventUser | undefined>> {
    const facts = await this.#facts();
    return facts.kind === 'Ok' ? this.#gitlab.mergeRequests.pushAuthor(facts.value, this.#signal) : facts;
  }
}
