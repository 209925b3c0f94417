# SPDX-License-Identifier: Apache-2.0
# A cluster of the test's own, for what would disturb others. Each test is a script that sources this
# file, names what it checks in sentences, and leaves the machine as it was.
# shellcheck source=tests/slurm/assertions.bash
source "$(dirname "${BASH_SOURCE[0]}")/assertions.bash"

instance=t$((BASHPID % 10000000))
export TRIREME_CLUSTER_NAME=$instance

# finish [STATUS]: STATUS where a trap of the test's own has run commands before
finish() {
  local status=${1:-$?}
  trap - EXIT
  "$cluster" down --name "$instance" >/dev/null 2>&1 || true
  "$cluster" down --name "${instance}b" >/dev/null 2>&1 || true
  rm -rf "$work"
  if ((status != 0)); then exit "$status"; fi
  ((failures == 0)) || { echo "$failures checks failed"; exit 1; }
  echo "all checks passed"
}
trap finish EXIT
# A test that is stopped from outside has not passed.
trap 'exit 143' TERM
trap 'exit 130' INT
