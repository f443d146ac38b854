import type { CheckpointRef, LoopProgress, RunResult } from './result.ts';

/** One agent loop of this process. It never touches the run's status: the reconciler asks and writes. */
export class Execution {
  readonly #abort = new AbortController();
  #result: RunResult | undefined;
  #progress: LoopProgress | undefined;
  readonly #ended: Promise<void>;

  constructor(
    work: (signal: AbortSignal, report: (progress: LoopProgress) => void) => Promise<RunResult>,
    onChange: () => void,
  ) {
    this.#ended = work(this.#abort.signal, (progress) => {
      this.#progress = progress;
      onChange();
    }).then((result) => {
      this.#result = result;
      onChange();
    });
  }

  /** Undefined while it runs. */
  get result(): RunResult | undefined {
    return this.#result;
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

  get ended(): Promise<void> {
    return this.#ended;
  }
}

/** Why a loop was stopped from outside; the abort signal's reason. */
export class StopReason extends Error {
  override readonly name = 'StopReason';
  readonly kind: 'Cancelled' | 'Timeout' | 'Fenced' | 'Shutdown';
  constructor(kind: StopReason['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export type { CheckpointRef };
