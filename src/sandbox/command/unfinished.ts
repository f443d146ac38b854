import { type Clock, sleep } from '../../kube/clock.ts';
import { SandboxLostError } from '../port.ts';
import { CappedOutput } from './collect.ts';
import type { Commands } from './commands.ts';
import { KILL_SCRIPT, killArguments } from './kill-script.ts';
import { EXEC_ID_VARIABLE, shellScript } from './marked-command.ts';

/**
 * Prints the ids of commands that still run, a line each: of processes that were put into the container from outside
 * (their parent has the number 0 there) and carry an id. What a command that has ended left running is not among
 * them: its parent is the container's first process. Ids are UUIDs: whatever the next variable's name begins with,
 * it follows at once, since `read` drops the NUL between them.
 */
export const UNFINISHED_SCRIPT = `
slurp() {
  text=
  while IFS= read -r line || [ -n "$line" ]; do text="$text$line "; done <"$1"
}
for dir in /proc/[0-9]*; do
  pid=\${dir#/proc/}
  [ "$pid" != 1 ] && [ "$pid" != $$ ] || continue
  slurp "$dir/stat"
  set -- \${text##*)}
  [ "$2" = 0 ] || continue
  slurp "$dir/environ"
  case $text in *"${EXEC_ID_VARIABLE}="*) ;; *) continue ;; esac
  id=\${text#*${EXEC_ID_VARIABLE}=}
  printf '%s\\n' "\${id%%[!0-9a-f-]*}"
done 2>/dev/null
exit 0
`;

const ATTEMPTS = 3;
const PAUSE_MS = 1_000;
const TIMEOUT_MS = 20_000;
/** Some 1,700 ids. */
const MAX_BYTES = 64 * 1024;

/**
 * Ends the commands that an earlier holder of the sandbox has left behind, one that was killed or lost its Lease: they
 * will be run again, and must not run twice at once. Rejects with `SandboxLostError` when they do not end.
 */
export async function endUnfinished(commands: Commands, clock: Clock, signal?: AbortSignal): Promise<void> {
  let why = '';
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0) await sleep(clock, PAUSE_MS, signal);
    signal?.throwIfAborted();
    try {
      const left = await unfinished(commands);
      if (left.length === 0) return;
      for (const id of left) await commands.runPlain(killing(id), { timeoutMs: TIMEOUT_MS });
      if ((await unfinished(commands)).length === 0) return;
      why = 'they do not end';
    } catch (error) {
      if (error instanceof SandboxLostError) throw error;
      why = error instanceof Error ? error.message : String(error);
    }
  }
  throw new SandboxLostError(
    `sandbox ${commands.where} is given up: commands of an earlier holder may still run in it: ${why}`,
  );
}

async function unfinished(commands: Commands): Promise<readonly string[]> {
  const stdout = new CappedOutput(MAX_BYTES);
  const exitCode = await commands.runPlain(shellScript(UNFINISHED_SCRIPT), { timeoutMs: TIMEOUT_MS, stdout });
  if (exitCode !== 0) throw new Error(`looking for its commands ended with exit code ${exitCode}`);
  const ids = Buffer.from(stdout.kept).toString('latin1').split('\n');
  return [...new Set(ids.filter((id) => id !== ''))];
}

const killing = (id: string): readonly string[] => shellScript(KILL_SCRIPT, ...killArguments(id, 'KILL'));
