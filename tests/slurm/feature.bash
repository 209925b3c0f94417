# SPDX-License-Identifier: Apache-2.0
# For tests of single features (tests/slurm/features): the cluster of four nodes with the plugin that
# one of the tests slurm.cluster_up has started, and a folder of the test's own that all nodes see. Sourced;
# at the end jobs that are left are cancelled, and every node must be able to take jobs.
# shellcheck source=tests/slurm/assertions.bash
source "$(dirname "${BASH_SOURCE[0]}")/assertions.bash"

plugin=${TRIREME_SPANK_PLUGIN:?the SPANK plugin to test}
# shellcheck disable=SC2034 # for the tests
program=${TRIREME_PROGRAM:?the trireme to test}
[[ -f $plugin ]] || skip "no SPANK plugin was built (no slurm/spank.h)"
: "${TRIREME_CLUSTER_NAME:?the cluster that slurm.cluster_up has started}"
"$cluster" status >/dev/null || exit 1

# shellcheck disable=SC2034 # for the tests
cluster_folder=${TRIREME_CLUSTER_ROOT:-/run/trireme-cluster}/$TRIREME_CLUSTER_NAME
shared=${1:-$PWD}/$(basename "$0")-$$
# A test of other users sets for_all=yes before it sources this file: its folder then lies where they
# can go and write, wherever the build is.
[[ ${for_all:-no} == no ]] || shared=$cluster_folder/$(basename "$0")-$$
mkdir -p "$shared"
if [[ ${for_all:-no} == yes ]]; then
  chmod 1777 "$shared"
  umask 022
fi
cd "$shared"

run() { "$cluster" run "$@"; }
# shellcheck source=tests/slurm/jobs.bash
source "$source_folder/tests/slurm/jobs.bash"

queue_empty() { [[ -z $(run squeue --noheader) ]]; }
finish() {
  local status=$?
  trap - EXIT
  local left
  left=$(run squeue --noheader --format=%A | sort -u)
  # shellcheck disable=SC2086 # numbers
  [[ -z $left ]] || run scancel --quiet $left
  wait_for 60 queue_empty || failures=$((failures + 1))
  check "no node was drained" no_drain
  cd /
  rm -rf "$shared" "$work"
  if ((status != 0)); then exit "$status"; fi
  ((failures == 0)) || { echo "$failures checks failed"; exit 1; }
  echo "all checks passed"
}
trap finish EXIT
# A test that is stopped from outside has not passed.
trap 'exit 143' TERM
trap 'exit 130' INT
