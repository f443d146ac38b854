import type { ByteSink } from '../../kube/exec.ts';
import { shellScript } from '../command/marked-command.ts';

/** Says which boot of the guest this is, and then waits for the end of its input, which is our end. */
export const BOOT_ID_COMMAND = (mark: string): readonly string[] =>
  shellScript(
    'id=; { read -r id </proc/sys/kernel/random/boot_id; } 2>/dev/null; printf "%s %s\\n" "$1" "$id"; exec cat >/dev/null',
    mark,
  );

/** What a login prints before it runs a command is not more than this. */
const MAX_BYTES = 64 * 1024;

/** Waits for the line with the mark, behind whatever the guest's own start-up files print. */
export class Greeting implements ByteSink {
  readonly mark: string;
  /** Undefined until the line has come; empty when the guest has no boot id. */
  bootId: string | undefined;
  #text = '';

  constructor(mark: string) {
    this.mark = mark;
  }

  write(chunk: Uint8Array): void {
    if (this.bootId !== undefined || this.#text.length > MAX_BYTES) return;
    this.#text += Buffer.from(chunk).toString('latin1');
    const at = this.#text.indexOf(`${this.mark} `);
    const end = at < 0 ? -1 : this.#text.indexOf('\n', at);
    if (end < 0) return;
    this.bootId = this.#text.slice(at + this.mark.length + 1, end).trim();
    this.#text = '';
  }
}
