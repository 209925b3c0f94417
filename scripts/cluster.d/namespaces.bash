# SPDX-License-Identifier: Apache-2.0
# Mode "namespaces": every node is a set of Linux namespaces, joined by a bridge that lives in the
# controller's network namespace. Nothing appears in the machine's own network. As on most clusters,
# nodes have two networks in common, and addresses of both families on the first.

namespace_of() { echo "trireme-$name-$1"; }

namespaces_check() {
  ((EUID == 0)) || fail "mode namespaces needs root; use sudo, or --mode ports"
  command -v ip >/dev/null || fail "no 'ip' command; run scripts/setup --with-slurm"
}

namespaces_prepare() {
  local controller node
  controller=$(namespace_of ctl)
  ip netns add "$controller"
  ip -n "$controller" link set lo up
  local bridge
  for bridge in br0 br1; do
    ip -n "$controller" link add "$bridge" type bridge
    ip -n "$controller" link set "$bridge" up
  done
  ip -n "$controller" address add 10.77.0.254/24 dev br0
  # A hostname of its own that outlives the daemons that use it.
  : >"$dir/ctl.uts"
  unshare --uts="$dir/ctl.uts" hostname ctl
  for node in $(node_names); do
    local space
    space=$(namespace_of "$node")
    ip netns add "$space"
    ip -n "$space" link set lo up
    ip -n "$controller" link add "$node" type veth peer name eth0 netns "$space"
    ip -n "$controller" link set "$node" master br0 up
    ip -n "$space" address add "10.77.0.${node#n}/24" dev eth0
    # Without duplicate address detection: an address is there at once.
    ip -n "$space" address add "fd77::${node#n}/64" dev eth0 nodad 2>/dev/null ||
      say "node $node has no IPv6 (the kernel lacks it)"
    ip -n "$space" link set eth0 up
    ip -n "$controller" link add "$node-b" type veth peer name eth1 netns "$space"
    ip -n "$controller" link set "$node-b" master br1 up
    ip -n "$space" address add "10.78.0.${node#n}/24" dev eth1
    ip -n "$space" link set eth1 up
  done
}

# A command in the controller's network and under its hostname.
namespaces_beside_controller() {
  nsenter --net="/run/netns/$(namespace_of ctl)" --uts="$dir/ctl.uts" "$@"
}

namespaces_daemon() { # NAME COMMAND...: a daemon beside the controller
  local log=$dir/log/$1.out
  shift
  namespaces_beside_controller setsid env -i PATH="$PATH" SLURM_CONF="$dir/slurm.conf" "$@" \
    >"$log" 2>&1 </dev/null 9>&- &
}

# Process 1 of a node's own process space is node-init: with it every process of the node dies.
namespaces_start_node() {
  local node=$1
  clean_environment setsid nsenter --net="/run/netns/$(namespace_of "$node")" \
    unshare --uts --ipc --pid --mount --fork --kill-child --mount-proc \
    "$parts/node-init" "$node" "$dir" >"$dir/log/$node.out" 2>&1 </dev/null 9>&- &
}

namespaces_processes() { ip netns pids "$(namespace_of "$1")" 2>/dev/null || true; }

# The process that the machine sees as node-init; empty when the node is down.
namespaces_init_of() {
  local process
  for process in $(namespaces_processes "$1"); do
    if [[ $(awk '/^NSpid:/ {print $NF, NF}' "/proc/$process/status" 2>/dev/null) == "1 3" ]]; then
      echo "$process"
      return
    fi
  done
}

namespaces_exec() { # NODE COMMAND...
  local init
  init=$(namespaces_init_of "$1")
  [[ -n $init ]] || fail "node $1 is down; scripts/cluster heal-node $1"
  shift
  exec nsenter --target "$init" --net --uts --ipc --pid --mount -- \
    env -C "$PWD" SLURM_CONF="$dir/slurm.conf" "$@"
}

namespaces_link() { # NODE up|down: on both networks
  local link
  for link in "$1" "$1-b"; do ip -n "$(namespace_of ctl)" link set "$link" "$2"; done
}

namespaces_remove() {
  local node space
  for node in $(node_names) ctl; do
    space=$(namespace_of "$node")
    [[ -e /run/netns/$space ]] || continue
    wait_until 10 kill_all namespaces_processes "$node" ||
      say "processes of $node do not end: $(namespaces_processes "$node" | paste -sd' ')"
    ip netns delete "$space"
  done
  if mountpoint -q "$dir/ctl.uts" 2>/dev/null || grep -q " $dir/ctl.uts " /proc/mounts; then
    umount "$dir/ctl.uts"
  fi
}
