import type { Questions } from './approvals.ts';
import type { LoopProgress, RunResult } from './result.ts';

/** Until a run is looked at again that would begin while the process ends; its queue takes nothing more by then. */
export const STOPPING_MS = 1_000;

/**
 * Why a loop was stopped from outside. Cancelled, Superseded and Timeout end the run; Fenced and Shutdown only end this
 * process's part in it: what the loop returns then is thrown away, since another holder goes on.
 */
export class StopReason extends Error {
  readonly kind: 'Cancelled' | 'Superseded' | 'Timeout' | 'Fenced' | 'Shutdown';

  constructor(kind: StopReason['kind'], message: string) {
    super(message);
    this.kind = kind;
    // The loop tells a deadline from a cancellation by this name.
    this.name = kind === 'Timeout' ? 'TimeoutError' : 'StopReason';
  }
}

/** Undefined: this loop has no say in how the run ends. */
export type Work = (
  signal: AbortSignal,
  report: (progress: LoopProgress) => void,
) => Promise<RunResult | undefined>;

/** One agent loop of this process. It never touches the run's status: the reconciler asks and writes. */
export class Execution {
  readonly #abort = new AbortController();
  readonly #ended: Promise<void>;
  /** Calls of the loop that wait for people. */
  readonly questions: Questions | undefined;
  #state: { kind: 'Running' } | { kind: 'Finished'; result: RunResult } | { kind: 'Discarded' } = {
    kind: 'Running',
  };
  #progress: LoopProgress | undefined;

  /**
   * `onChange` is called after each report and at the end. `work` does not reject: what it cannot do it says in its
   * result, or the loop would be started again and again.
   */
  constructor(work: Work, onChange: () => void, questions?: Questions) {
    this.questions = questions;
    this.#ended = work(this.#abort.signal, (progress) => {
      this.#progress = progress;
      onChange();
    }).then(
      (result) => {
        const reason: unknown = this.#abort.signal.reason;
        const dropped =
          reason instanceof StopReason && (reason.kind === 'Fenced' || reason.kind === 'Shutdown');
        this.#state = dropped || result === undefined ? { kind: 'Discarded' } : { kind: 'Finished', result };
        onChange();
      },
      () => {
        this.#state = { kind: 'Discarded' };
        onChange();
      },
    );
  }

  get state(): 'Running' | 'Finished' | 'Discarded' {
    return this.#state.kind;
  }

  get result(): RunResult | undefined {
    return this.#state.kind === 'Finished' ? this.#state.result : undefined;
  }

  /** The newest checkpoint that is safe in the store. */
  get progress(): LoopProgress | undefined {
    return this.#progress;
  }

  /** Kills the running command and ends the loop; resolves when it has ended. */
  async stop(reason: StopReason): Promise<void> {
    this.#abort.abort(reason);
    await this.#ended;
  }
}
