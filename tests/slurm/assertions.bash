# SPDX-License-Identifier: Apache-2.0
# What tests on a real cluster are written with: sentences that are checked, and reasons to skip.
# Sourced by checks.bash (a cluster of the test's own) and feature.bash (a cluster that is shared).

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cluster=$source_folder/scripts/cluster
failures=0

skip() { echo "TRIREME_SKIP: $*"; exit 77; }

((EUID == 0)) || skip "a cluster of namespaces needs root"
for needed in slurmctld slurmd munged ip mpicc; do
  command -v "$needed" >/dev/null || skip "no $needed (scripts/setup --with-slurm installs it)"
done

work=$(mktemp -d)

# check SENTENCE COMMAND...: runs the command, which must succeed; a function ends at its first
# failing command
check() {
  local sentence=$1 status=0
  shift
  set +e
  (set -e; "$@") >"$work/check.log" 2>&1
  status=$?
  set -e
  if ((status == 0)); then
    echo "ok      $sentence"
  else
    echo "FAILED  $sentence: $*"
    sed 's/^/        /' "$work/check.log"
    failures=$((failures + 1))
  fi
}

# equal EXPECTED ACTUAL
equal() { [[ $1 == "$2" ]] || { echo "expected '$1', got '$2'"; return 1; }; }
# holds TEXT PART
holds() { [[ $1 == *"$2"* ]] || { echo "'$2' is not in '$1'"; return 1; }; }
# fails COMMAND...
fails() { if "$@"; then echo "did not fail: $*"; return 1; fi; }
# exits CODE COMMAND...
exits() {
  local expected=$1 actual=0
  shift
  "$@" || actual=$?
  equal "$expected" "$actual"
}
