# SPDX-License-Identifier: Apache-2.0
# What an instance is: its name, its folder and the facts that `up` wrote down there.

say() { echo "cluster: $*" >&2; }
fail() { say "$*"; exit 1; }
fail_usage() { say "$*"; exit 2; }

name=${TRIREME_CLUSTER_NAME:-default}
if ((EUID == 0)); then
  root=${TRIREME_CLUSTER_ROOT:-/run/trireme-cluster}
else
  root=${TRIREME_CLUSTER_ROOT:-${XDG_RUNTIME_DIR:-$HOME/.cache}/trireme-cluster}
fi

# Facts of an instance, with the defaults of `up`.
mode=namespaces
nodes=4
gpus=4
cpus=8
spank=''
switches=''
accounting=no
base_port=0
facts=(mode nodes gpus cpus spank switches accounting base_port)

# Sets the name and the folder; refuses names that would not do as part of an interface's name.
choose_instance() {
  name=$1
  [[ $name =~ ^[a-z][a-z0-9]{0,11}$ ]] ||
    fail_usage "--name '$name' must be 1 to 12 lower-case letters and digits, beginning with a letter"
  dir=$root/$name
}
choose_instance "$name"

write_facts() {
  local fact
  for fact in "${facts[@]}"; do printf '%s=%q\n' "$fact" "${!fact}"; done >"$dir/facts"
}

# Reads the facts of a running instance; its folder belongs to us, so its file may be sourced.
load_instance() {
  [[ -f $dir/facts ]] || fail "no instance '$name'; start one with: scripts/cluster up --name $name"
  [[ -O $dir/facts ]] || fail "instance '$name' in $dir belongs to somebody else"
  # shellcheck disable=SC1091
  source "$dir/facts"
}

node_names() {
  local index
  for ((index = 1; index <= nodes; ++index)); do echo "n$index"; done
}

check_node() {
  local node
  for node in $(node_names); do [[ $node == "$1" ]] && return; done
  fail_usage "no node '$1' in instance '$name'; it has $(node_names | paste -sd' ')"
}

# One up or down at a time. Daemons are started without descriptor 9, which holds the lock.
lock_root() {
  mkdir -p "$root"
  exec 9>"$root/.lock"
  flock 9
}

# The daemons' environment: nothing of the caller's leaks into jobs.
clean_environment() {
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME" \
    LANG=C.UTF-8 SLURM_CONF="$dir/slurm.conf" "$@"
}

# wait_until SECONDS COMMAND...: repeats until it succeeds
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# Runs one of the two modes' functions: in_mode start_node n1 -> namespaces_start_node n1
in_mode() {
  local function=${mode}_$1
  shift
  "$function" "$@"
}
