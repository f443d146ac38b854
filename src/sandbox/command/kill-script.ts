import { EXEC_ID_VARIABLE } from './marked-command.ts';

/**
 * Ends all processes of the command with the id `$1`: those that carry the id in their environment, their
 * descendants, and the sessions that they lead. They are stopped first and killed when no new one is found:
 * a stopped process starts no other, and still shows whose child it is.
 *
 * Only shell builtins: it works when the sandbox has no process left to fork, and with any image that has `sh`.
 * `read` drops the NUL bytes of `environ` in dash, bash and busybox. A zombie counts as ended: its parent, or the
 * container's first process, must reap it. Exit status 0: none is left; 1: the pids that are left on stdout.
 *
 * What it cannot find: a process that has cleared its environment, left its session and lost its parent before
 * the kill, and one that its user may not look at. Such a process ends with the sandbox.
 */
export const KILL_SCRIPT = `
trap '' HUP INT PIPE TERM
mark="${EXEC_ID_VARIABLE}=$1"
victims=' ' sessions=' '
slurp() {
  text=
  while IFS= read -r line || [ -n "$line" ]; do text="$text$line "; done <"$1"
}
look() {
  table=
  for dir in /proc/[0-9]*; do
    pid=\${dir#/proc/}
    [ "$pid" = $$ ] && continue
    slurp "$dir/stat"
    set -- \${text##*)}
    case $1 in '' | Z | X) continue ;; esac
    table="$table $pid:$2:$4"
  done
}
add() {
  victims="$victims$1 " found=1
  [ "$1" = "$2" ] && sessions="$sessions$2 "
  kill -STOP "$1"
}
spread() {
  more=1
  while [ -n "$more" ]; do
    more=
    for entry in $table; do
      pid=\${entry%%:*} rest=\${entry#*:}
      case $victims in *" $pid "*) continue ;; esac
      case $victims in *" \${rest%:*} "*) add $pid \${rest#*:}; more=1; continue ;; esac
      case $sessions in *" \${rest#*:} "*) add $pid \${rest#*:}; more=1 ;; esac
    done
  done
}
search() {
  found=
  look
  spread
  for entry in $table; do
    pid=\${entry%%:*}
    case $victims in *" $pid "*) continue ;; esac
    slurp "/proc/$pid/environ"
    case $text in *"$mark"*) add $pid \${entry##*:} ;; esac
  done
  spread
}
{
  pass=0
  while search; [ -n "$found" ] && [ $pass -lt 100 ]; do pass=$((pass + 1)); done
  left=$victims pass=0
  while [ "$left" != ' ' ] && [ $pass -lt 1000 ]; do
    kill -KILL $left
    look
    left=' '
    for entry in $table; do
      case $victims in *" \${entry%%:*} "*) left="$left\${entry%%:*} " ;; esac
    done
    pass=$((pass + 1))
  done
} 2>/dev/null
[ "$left" = ' ' ] || { echo "$left"; exit 1; }
`;
