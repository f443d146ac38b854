import { ROOM_FOR_PROCESSES } from '../port.ts';
import { EXEC_ID_VARIABLE } from './marked-command.ts';

/** How long before the command's start a process may have begun and still count as its own: clocks and waits differ. */
const SLACK_MS = 5_000;

/**
 * With more processes than this all of them are stopped before anything else, by one call, and those that are not
 * meant go on afterwards: a fork bomb leaves the script a thousandth of the processor. Zombies, which nobody reaps in a
 * pod, count only for the stop; a crowd of living ones is not asked to end, and stays stopped until it is killed.
 */
const CROWD = 256;

/** Arguments of KILL_SCRIPT. `ageMs`: since the command was asked for; left out, no orphans are looked for. */
export function killArguments(id: string, signal: 'TERM' | 'KILL', ageMs?: number): readonly string[] {
  return [id, signal, ageMs === undefined ? '' : String(Math.ceil((ageMs + SLACK_MS) / 10))];
}

/**
 * Ends all processes of the command with the id `$1`: those that carry the id in their environment, their
 * descendants, and the sessions that they lead; and, with `$3`, orphans without any id that began at most so many
 * ticks (hundredths of a second) ago: a daemon that has cleared its environment and lost its parent. Such an orphan
 * of another command that runs at the same time goes with them.
 *
 * `$2` KILL: they are stopped first and killed when no new one is found: a stopped process starts no other, and
 * still shows whose child it is. `$2` TERM: each is asked once to end.
 *
 * Only shell builtins: it works when the sandbox has no process left to fork, and with any image that has `sh`.
 * `read` drops the NUL bytes of `environ` in dash, bash and busybox. A zombie counts as ended: its parent, or the
 * container's first process, must reap it. Exit status 0: none is left; 1: the pids that are left on stdout;
 * another one: they have ended, and no process can be started (zombies that nobody reaps count as processes).
 *
 * What it cannot find: an orphan that carries another command's id. It ends with the sandbox. For root it neither
 * looks for orphans nor stops a crowd: on a machine that is more than a sandbox they would be everybody's.
 */
export const KILL_SCRIPT = `
trap '' HUP INT PIPE TERM
mark="${EXEC_ID_VARIABLE}=$1" signal=$2 ticks=$3
victims=' ' sessions=' ' since=
slurp() {
  text=
  while IFS= read -r line || [ -n "$line" ]; do text="$text$line "; done <"$1"
}
look() {
  table= orphans=
  for dir in /proc/[0-9]*; do
    pid=\${dir#/proc/}
    [ "$pid" = $$ ] && continue
    slurp "$dir/stat"
    set -- \${text##*)}
    case $1 in '' | Z | X) continue ;; esac
    table="$table $pid:$2:$4"
    [ -z "$since" ] || [ "$2" != 1 ] || [ "\${20}" -lt "$since" ] || orphans="$orphans $pid:$2:$4"
  done
}
add() {
  if [ $signal = KILL ]; then kill -STOP "$1" || return; else kill -0 "$1" || return; fi
  [ "$1" != "$2" ] || sessions="$sessions$2 "
  victims="$victims$1 " found=1
}
spread() {
  more=1
  while [ -n "$more" ]; do
    more=
    for entry in $table; do
      pid=\${entry%%:*} rest=\${entry#*:}
      case $victims in *" $pid "*) continue ;; esac
      case $victims in *" \${rest%:*} "*) add $pid \${rest#*:} && more=1; continue ;; esac
      case $sessions in *" \${rest#*:} "*) add $pid \${rest#*:} && more=1 ;; esac
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
  for entry in $orphans; do
    pid=\${entry%%:*}
    case $victims in *" $pid "*) continue ;; esac
    slurp "/proc/$pid/environ"
    case $text in *"${EXEC_ID_VARIABLE}="*) ;; *) add $pid \${entry##*:} ;; esac
  done
  spread
}
{
  if [ -n "$ticks" ]; then
    slurp /proc/self/status
    case $text in
    *"Uid:\t0\t"*) ;;
    *)
      slurp /proc/uptime
      text=\${text%% *} hundredths=\${text#*.}
      since=$((\${text%.*} * 100 + \${hundredths#0} - ticks)) ;;
    esac
  fi
  set -- /proc/[0-9]*
  crowd=
  if [ -n "$since" ] && [ $# -gt ${CROWD} ]; then crowd=1; kill -STOP -1; fi
  if [ $signal = TERM ]; then
    if [ -n "$crowd" ]; then
      look
      set -- $table
      [ $# -le ${CROWD} ] || exit 0
    fi
    search
    [ "$victims" = ' ' ] || kill -TERM $victims
    [ -z "$crowd" ] || kill -CONT -1
    exit 0
  fi
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
  [ -z "$crowd" ] || kill -CONT -1
} 2>/dev/null
[ "$left" = ' ' ] || { echo "$left"; exit 1; }
[ -z "$ticks" ] || { ${ROOM_FOR_PROCESSES}; } 2>/dev/null
`;
