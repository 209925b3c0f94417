# SPDX-License-Identifier: Apache-2.0
# One function per command of scripts/cluster.

# kill_all LISTING ARGUMENT...: kills what the listing names; succeeds once it names nothing
kill_all() {
  local processes
  processes=$("$@")
  [[ -n $processes ]] || return 0
  # shellcheck disable=SC2086
  kill -KILL $processes 2>/dev/null || true
  return 1
}

slurm() { in_mode beside_controller env SLURM_CONF="$dir/slurm.conf" "$@"; }

start_controller() {
  in_mode daemon slurmctld slurmctld -D
}

# Every node (or the one named) answers and can take jobs.
nodes_ready() {
  local states
  states=$(slurm sinfo --noheader --Node --format=%t ${1:+--nodes="$1"} 2>/dev/null) || return 1
  [[ $(grep -cxE 'idle|mix|alloc|comp' <<<"$states") == "${2:-$nodes}" ]]
}

# The node's slurmd answers on its port, whatever the controller still believes of it.
slurmd_answers() {
  local address
  address=$(sed -n "s/^NodeName=$1 .*NodeAddr=\([^ ]*\) Port=\([^ ]*\) .*/\1\/\2/p" "$dir/slurm.conf")
  in_mode beside_controller timeout 2 bash -c "exec 3<>/dev/tcp/$address" 2>/dev/null
}

node_is_back() { slurmd_answers "$1" && nodes_ready "$1" 1; }

show_logs() {
  local log
  for log in "$dir"/log/*; do
    [[ -s $log ]] || continue
    say "last lines of $log:"
    tail -n 5 "$log" >&2
  done
}

check_number() { # OPTION VALUE LOWEST HIGHEST
  [[ $2 =~ ^[0-9]+$ ]] && (($2 >= $3 && $2 <= $4)) ||
    fail_usage "$1 '$2' must be a number from $3 to $4"
}

parse_up() {
  while (($# > 0)); do
    case "$1" in
      --nodes | --gpus | --cpus | --mode | --spank | --switches | --name)
        (($# > 1)) || fail_usage "$1 needs a value"
        if [[ $1 == --name ]]; then choose_instance "$2"; else printf -v "${1#--}" '%s' "$2"; fi
        shift ;;
      --accounting) accounting=yes ;;
      *) fail_usage "up: unknown argument '$1'; try --nodes, --gpus, --cpus, --mode, --spank, --switches, --accounting, --name" ;;
    esac
    shift
  done
  check_number --nodes "$nodes" 1 60
  check_number --gpus "$gpus" 0 16
  check_number --cpus "$cpus" 1 1024
  [[ $mode == namespaces || $mode == ports ]] ||
    fail_usage "--mode '$mode' is neither namespaces nor ports"
  [[ $switches =~ ^[][n0-9,\ -]*$ ]] ||
    fail_usage "--switches '$switches' must be lists of nodes, one for each switch, as in 'n[1,3] n[2,4]'"
  if [[ $spank == none ]]; then
    spank=''
  elif [[ -z $spank ]]; then
    take_built_plugin
  else
    local plugin=${spank%% *}
    [[ -f $plugin ]] || fail_usage "--spank '$plugin' is no file"
    spank=$(readlink -f "$plugin")${spank#"$plugin"}
  fi
}

# The plugin of the build beside this script, where there is one and nodes have places of their own.
take_built_plugin() {
  local built=("$parts"/../../build/lib/slurm/spank_trireme-*.so)
  [[ $mode == namespaces && -f ${built[0]} ]] || return 0
  spank="$(readlink -f "${built[0]}") base=$dir/spool/%h/trireme"
  say "with the plugin of this build, ${built[0]##*/} (--spank none: without)"
}

command_up() {
  parse_up "$@"
  local program
  for program in munged slurmctld slurmd sinfo; do
    command -v "$program" >/dev/null || fail "no $program; run scripts/setup --with-slurm"
  done
  in_mode check
  [[ $accounting == no ]] || check_accounting
  local begin=$EPOCHREALTIME
  lock_root
  [[ ! -e $dir ]] || fail "instance '$name' exists already; scripts/cluster down --name $name"
  [[ $mode == namespaces ]] || choose_ports
  write_settings
  trap 'trap - EXIT; say "starting failed"; show_logs; tear_down' EXIT
  in_mode prepare
  in_mode daemon munged munged --foreground --num-threads=2 --socket="$dir/munge.socket" \
    --key-file="$dir/munge.key" --pid-file="$dir/munged.pid" --log-file="$dir/log/munged.log" \
    --seed-file="$dir/munge.seed"
  wait_until 10 test -S "$dir/munge.socket"
  [[ $accounting == no ]] || start_accounting
  start_controller
  local node
  for node in $(node_names); do in_mode start_node "$node"; done
  wait_until 30 nodes_ready || fail "the nodes do not become idle"
  trap - EXIT
  local end=$EPOCHREALTIME
  say "$(awk -v b="$begin" -v e="$end" -v n="$nodes" -v i="$name" \
    'BEGIN {printf "instance %s is ready: %d nodes in %.1f s", i, n, e - b}')"
}

tear_down() {
  in_mode remove
  rm -rf --one-file-system "$dir"
}

only_name() {
  while (($# > 0)); do
    [[ $1 == --name && $# -gt 1 ]] || fail_usage "unknown argument '$1'; only --name NAME is taken"
    choose_instance "$2"
    shift 2
  done
}

command_down() {
  only_name "$@"
  lock_root
  if [[ ! -f $dir/facts ]]; then
    say "no instance '$name'"
    return 0
  fi
  load_instance
  tear_down
  say "instance $name is gone"
}

command_run() {
  local user=${SUDO_USER:-}
  while (($# > 0)); do
    case "$1" in
      --name) choose_instance "${2:?--name needs a value}"; shift 2 ;;
      --user) user=${2:?--user needs a value}; shift 2 ;;
      --) shift; break ;;
      -*) fail_usage "run: unknown option '$1' before the command; try --name, --user" ;;
      *) break ;;
    esac
  done
  (($# > 0)) || fail_usage "run: which command?"
  load_instance
  local as=()
  if ((EUID == 0)) && [[ -n $user && $user != root ]]; then
    as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups)
  fi
  if [[ $mode == namespaces ]]; then
    [[ $PWD/ != /tmp/* ]] || say "the nodes have a /tmp of their own and do not see $PWD"
    exec nsenter --net="/run/netns/$(namespace_of ctl)" --uts="$dir/ctl.uts" -- "${as[@]}" \
      env SLURM_CONF="$dir/slurm.conf" "$@"
  fi
  exec "${as[@]}" env SLURM_CONF="$dir/slurm.conf" "$@"
}

command_exec() {
  if [[ ${1:-} == --name ]]; then
    choose_instance "${2:?--name needs a value}"
    shift 2
  fi
  (($# > 1)) || fail_usage "exec: which node, which command?"
  load_instance
  check_node "$1"
  in_mode exec "$@"
}

# Sets node and link_only from the arguments of kill-node and heal-node.
parse_node_command() {
  node='' link_only=no
  while (($# > 0)); do
    case "$1" in
      --name) choose_instance "${2:?--name needs a value}"; shift ;;
      --link) link_only=yes ;;
      *) [[ -z $node ]] || fail_usage "one node at a time, not '$node' and '$1'"; node=$1 ;;
    esac
    shift
  done
  [[ -n $node ]] || fail_usage "which node?"
  load_instance
  check_node "$node"
}

command_kill_node() {
  parse_node_command "$@"
  # The link first: a machine without power sends no farewells.
  if [[ $mode == namespaces || $link_only == yes ]]; then in_mode link "$node" down; fi
  [[ $link_only == yes ]] || wait_until 10 kill_all "${mode}_processes" "$node"
}

command_heal_node() {
  parse_node_command "$@"
  in_mode link "$node" up
  [[ -n $(in_mode init_of "$node") ]] || in_mode start_node "$node"
  wait_until 60 node_is_back "$node" || fail "Slurm does not take $node back; see $dir/log"
}

command_restart_controller() {
  only_name "$@"
  load_instance
  local process
  process=$(cat "$dir/slurmctld.pid")
  # It may have died before.
  kill "$process" 2>/dev/null || true
  wait_until 20 test ! -e "/proc/$process"
  start_controller
  wait_until 30 nodes_ready || fail "the controller does not come back; see $dir/log"
}

command_status() {
  only_name "$@"
  load_instance
  echo "instance $name: mode $mode, $nodes nodes with $cpus CPUs and $gpus GPUs each, in $dir"
  slurm sinfo --Node --format='%N %t %C %G %E' || echo "the controller does not answer"
  local node
  for node in $(node_names); do
    [[ -n $(in_mode init_of "$node") ]] || echo "$node is without power"
  done
}
