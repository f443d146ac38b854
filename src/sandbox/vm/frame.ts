import type { ByteSink } from '../../kube/exec.ts';
import { EndMarkFilter } from '../command/input.ts';
import { shellScript } from '../command/marked-command.ts';

/**
 * A shell stays around the command. It says on stderr that the command begins; it makes an exit status of a signal,
 * which ssh would not tell apart from a lost connection (255 for both); and it says when 255 is the command's own.
 * A shell's remark about a killed child is nobody's output.
 */
const FRAME = `
printf %s "$1" >&2
own=$2
shift 2
cd /tmp 2>/dev/null
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
code=$?
[ $code != 255 ] || printf %s "$own" >&3
exit $code`;

/** ssh's exit code for its own failures. */
const SSH_FAILED = 255;

/** Takes the frame's marks out of one command's stderr. */
export class Frame {
  readonly words: readonly string[];
  readonly stderr: ByteSink;
  #begun = false;
  #own255 = false;
  readonly #outer: EndMarkFilter;
  readonly #inner: EndMarkFilter;

  constructor(command: readonly string[], newId: () => string, sink: ByteSink | undefined) {
    const [begin, own] = [newId(), newId()];
    this.words = shellScript(FRAME, begin, own, ...command);
    this.#inner = new EndMarkFilter(own, sink, () => {
      this.#own255 = true;
    });
    this.#outer = new EndMarkFilter(begin, this.#inner, () => {
      this.#begun = true;
    });
    this.stderr = this.#outer;
  }

  /** The command was started. */
  get begun(): boolean {
    return this.#begun;
  }

  /** The command's own exit code; undefined when `exit` is ssh's. */
  exitCode(exit: number | undefined): number | undefined {
    const own = this.#begun && (exit !== SSH_FAILED || this.#own255);
    return own ? exit : undefined;
  }

  /** No more comes. */
  async flush(): Promise<void> {
    await this.#outer.flush();
    await this.#inner.flush();
  }
}
