# What the tests on a real cluster share. Each test is a script that sources this file, names what
# it checks in sentences, and leaves the machine as it was.

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cluster=$source_folder/scripts/cluster
failures=0

skip() { echo "TRIREME_SKIP: $*"; exit 77; }

((EUID == 0)) || skip "a cluster of namespaces needs root"
for program in slurmctld slurmd munged ip mpicc; do
  command -v "$program" >/dev/null || skip "no $program (scripts/setup --with-slurm installs it)"
done

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

work=$(mktemp -d)
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
