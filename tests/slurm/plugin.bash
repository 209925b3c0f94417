# A cluster of four nodes with the plugin loaded, and a folder that all of them see. Each node keeps
# the plugin's folders in a place of its own, because nodes share /run.
# shellcheck source=tests/slurm/checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/checks.bash"

plugin=${TRIREME_SPANK_PLUGIN:?the SPANK plugin to test}
program=${TRIREME_PROGRAM:?the trireme to test}
[[ -f $plugin ]] || skip "no SPANK plugin was built (no slurm/spank.h)"

shared=${1:-$PWD}/$(basename "$0")-$instance
mkdir -p "$shared"
remove_shared() {
  local status=$?
  rm -rf "$shared"
  finish "$status"
}
trap remove_shared EXIT
cd "$shared"

cluster_folder=${TRIREME_CLUSTER_ROOT:-/run/trireme-cluster}/$instance
# The plugin's folder on a node.
base_of() { echo "$cluster_folder/spool/$1/trireme"; }
"$cluster" up --spank "$plugin base=$cluster_folder/spool/%h/trireme core=none" 2>up.log || {
  cat up.log
  exit 1
}

run() { "$cluster" run "$@"; }
# A batch script of the lines given; runs it to its end and prints what it wrote.
batch() { # LINES [ARGUMENT OF SBATCH...]
  printf '#!/bin/bash\n%s\n' "$1" >job.sh
  shift
  rm -f batch.out
  run sbatch --wait -o batch.out "$@" job.sh >sbatch.log 2>&1 || { cat sbatch.log; }
  cat batch.out
}
no_job() { equal "" "$(run squeue --noheader --states=all --format='%i %T' | grep -v COMPLET || true)"; }
# Every node can take jobs.
no_drain() { equal "" "$(run sinfo --noheader --Node --format='%N %t' | grep -vE 'idle|comp|mix' || true)"; }
