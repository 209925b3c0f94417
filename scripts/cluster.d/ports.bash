# SPDX-License-Identifier: Apache-2.0
# Mode "ports": all daemons on the loopback of this machine, told apart by their ports. Processes
# are found by a mark in their environment, and by descent from such a process.

ports_per_instance=64

ports_check() { ((nodes < ports_per_instance - 2)) || fail_usage "--nodes $nodes is more than ports mode has room for"; }

port_in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first block of ports that no other instance of this root has and that nobody listens on.
choose_ports() {
  local block taken
  taken=$(sed -n "s/^base_port=//p" "$root"/*/facts 2>/dev/null || true)
  for ((block = 20480; block < 32768; block += ports_per_instance)); do
    grep -qx "$block" <<<"$taken" && continue
    local port busy=no
    for ((port = block; port <= block + nodes + 1; ++port)); do
      if port_in_use "$port"; then busy=yes; break; fi
    done
    if [[ $busy == no ]]; then base_port=$block; return; fi
  done
  fail "no block of $ports_per_instance free ports between 20480 and 32767"
}

ports_prepare() { :; }

ports_mark() { echo "TRIREME_CLUSTER_MARK=$dir:$1"; }

ports_beside_controller() { "$@"; }

ports_daemon() { # NAME COMMAND...
  local log=$dir/log/$1.out
  shift
  setsid env -i PATH="$PATH" SLURM_CONF="$dir/slurm.conf" "$(ports_mark ctl)" "$@" \
    >"$log" 2>&1 </dev/null 9>&- &
}

ports_start_node() {
  local node=$1
  clean_environment setsid env "$(ports_mark "$node")" slurmd -D -N "$node" \
    >"$dir/log/$node.out" 2>&1 </dev/null 9>&- &
}

# Marked processes of a node and their descendants.
ports_processes() {
  local mark process found=()
  mark=$(ports_mark "$1")
  for process in /proc/[0-9]*; do
    if grep -qzxF -- "$mark" "$process/environ" 2>/dev/null; then found+=("${process#/proc/}"); fi
  done
  local index
  for ((index = 0; index < ${#found[@]}; ++index)); do
    local children
    children=$(cat "/proc/${found[index]}/task/"*/children 2>/dev/null || true)
    local child
    for child in $children; do
      [[ " ${found[*]} " == *" $child "* ]] || found+=("$child")
    done
  done
  ((${#found[@]} == 0)) || printf '%s\n' "${found[@]}"
}

ports_init_of() { ports_processes "$1" | head -n 1; }

ports_exec() { # NODE COMMAND...
  local node=$1
  shift
  exec env SLURM_CONF="$dir/slurm.conf" "$(ports_mark "$node")" "$@"
}

ports_link() { [[ $2 == up ]] || fail_usage "mode ports has no links; use kill-node without --link"; }

ports_remove() {
  local node
  for node in $(node_names) ctl; do
    wait_until 10 kill_all ports_processes "$node" ||
      say "processes of $node do not end: $(ports_processes "$node" | paste -sd' ')"
  done
}
