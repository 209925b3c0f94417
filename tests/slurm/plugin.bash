# SPDX-License-Identifier: Apache-2.0
# A cluster of four nodes with the plugin loaded, and a folder that all of them see. Each node keeps
# the plugin's folders in a place of its own, because nodes share /run.
# shellcheck source=tests/slurm/checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/checks.bash"

plugin=${TRIREME_SPANK_PLUGIN:?the SPANK plugin to test}
# shellcheck disable=SC2034 # for the tests that source this file
program=${TRIREME_PROGRAM:?the trireme to test}
[[ -f $plugin ]] || skip "no SPANK plugin was built (no slurm/spank.h)"

shared=${1:-$PWD}/$(basename "$0")-$instance
mkdir -p "$shared"
remove_shared() {
  local status=$?
  # Jobs that a test has cancelled write into the folder until the cluster is down.
  "$cluster" down --name "$instance" >/dev/null 2>&1 || true
  if declare -F after_down >/dev/null; then after_down || true; fi
  rm -rf --one-file-system "$shared"
  finish "$status"
}
trap remove_shared EXIT
cd "$shared"
# A test may make something there that nodes see only if it is there before they start.
if declare -F before_up >/dev/null; then before_up; fi

cluster_folder=${TRIREME_CLUSTER_ROOT:-/run/trireme-cluster}/$instance
# More for `scripts/cluster up`; a test sets it before it sources this file.
[[ -v cluster_options ]] || cluster_options=()
"$cluster" up "${cluster_options[@]}" --spank "$plugin base=$cluster_folder/spool/%h/trireme core=none" 2>up.log || {
  cat up.log
  exit 1
}

run() { "$cluster" run "$@"; }
# shellcheck source=tests/slurm/jobs.bash
source "$source_folder/tests/slurm/jobs.bash"
