/** Every process of a command carries this variable, with an id that is used once. */
export const EXEC_ID_VARIABLE = 'HB_EXEC_ID';

/** The shell is replaced, so that the exit status is the command's own. */
const RUN = `${EXEC_ID_VARIABLE}=$1; export ${EXEC_ID_VARIABLE}; shift; exec "$@"`;

/**
 * A command may end before it has read its input. Then nobody reads what still comes, and the container runtime
 * (seen with containerd 1.6) waits for somebody who does: no exit status comes, for kubectl neither. So a shell stays
 * behind, says on stderr that the command has ended, reads what is left, and ends with the command's exit status.
 */
const RUN_WITH_INPUT = `${EXEC_ID_VARIABLE}=$1; export ${EXEC_ID_VARIABLE}; shift
exec sh -c 'end=$1; shift; "$@"; code=$?; printf %s "$end" >&2; cat >/dev/null; exit $code' sh "$@"`;

/** The words that run `words`, marked with `id`; with `endMark` for a command with input. */
export function markedCommand(id: string, words: readonly string[], endMark?: string): readonly string[] {
  if (endMark === undefined) return ['sh', '-c', RUN, 'sh', id, ...words];
  return ['sh', '-c', RUN_WITH_INPUT, 'sh', id, endMark, ...words];
}

export function shellCommand(command: string): readonly string[] {
  return ['sh', '-c', command];
}

/** Runs the shell commands in `file`, which is gone before they begin: for those too long for an argument. */
export function shellFile(file: string): readonly string[] {
  return shellScript('exec 9<"$1" && rm -f -- "$1" && exec sh /proc/self/fd/9', file);
}

/** `args` are the script's `$1`, `$2`, …: no path is ever part of a shell's text. */
export function shellScript(script: string, ...args: readonly string[]): readonly string[] {
  return ['sh', '-c', script, 'sh', ...args];
}
