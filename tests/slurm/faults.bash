# SPDX-License-Identifier: Apache-2.0
# Runs that are struck while they train, and what must be left of them. Sourced after training.bash.

newest_checkpoint() {
  find "$1/checkpoints" -mindepth 1 -maxdepth 1 -printf '%f\n' |
    sed -n 's/^step-0*\([0-9]*\)$/\1/p' | sort -n | tail -n 1
}

# trains NAME: it has done some steps, and committed one of those that it saves beside them.
trains() { has_step "$1" 4 && [[ -n $(newest_checkpoint "$1") ]]; }

# submit NAME [ARGUMENT OF SBATCH...] -- [SETTING...]: a run of that name through the batch template;
# prints the job's number.
submit() {
  local name=$1 options=() settings=()
  shift
  while (($# > 0)) && [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  local setting
  for setting in "$@"; do settings+=(--set "$setting"); done
  TRIREME=$program run sbatch --parsable --no-requeue --trireme=on -o "$(basename "$name").out" "${options[@]}" \
    "$source_folder/slurm/train.sbatch" tiny.conf --set run.directory="$name" "${settings[@]}" \
    2>>submit.log
}
# shellcheck disable=SC2034  # for the tests that source this
two_a_node=(-N4 --ntasks-per-node=2 --tensor-parallel=2 --pipeline-parallel=2)
# shellcheck disable=SC2034  # for the tests that source this
endless=(train.steps=100000000 train.global_batch=8 checkpoint.every_steps=3)

# The processes of this test's runs, on whatever node; with a number: of that task.
processes() {
  local process
  for process in /proc/[0-9]*; do
    [[ $(readlink "$process/exe" 2>/dev/null) == "$program" ]] || continue
    [[ $(readlink "$process/cwd" 2>/dev/null) == "$PWD" ]] || continue
    if [[ -n ${1:-} ]]; then
      grep -qzx "SLURM_PROCID=$1" "$process/environ" 2>/dev/null || continue
    fi
    echo "${process#/proc/}"
  done
}
no_process() { [[ -z $(processes) ]]; }
# send SIGNAL TASK
send() { kill -"$1" "$(processes "$2")"; }

# gone_within SECONDS: all ranks are gone so long after now
gone_within() {
  local begin=$EPOCHREALTIME
  wait_for "$1" no_process
  awk -v b="$begin" -v e="$EPOCHREALTIME" 'BEGIN {printf "gone after %.1f s\n", e - b}' >>gone.log
}

# blames NAME RANK NODE WORDS: what ranks said, failure.json and the postmortem agree.
blames() {
  local said
  grep -v " train: step " "$1.out"
  said=$(sed -n 's/^trireme: failed with exit code 5: .*; first failing \(rank .*\); log: .*/\1/p' \
    "$1.out" | sort -u)
  equal "rank $2 on $3" "$said"
  run "$program" why "$1" --json >postmortem.json
  cat postmortem.json
  python3 - "$@" <<'END'
import json, sys
name, rank, node, words = sys.argv[1:]
for postmortem in [json.load(open("postmortem.json"))["cause"]]:
    assert (postmortem["rank"], postmortem["host"]) == (int(rank), node), postmortem
    assert words in postmortem["text"], postmortem
report = json.load(open(f"{name}/failure.json"))
assert (report["first_failing_rank"], report["host"]) == (int(rank), node), report
END
  holds "$(run "$program" why "$1")" "who          rank $2 on $3"
}

# What runs on nodes when nothing does: its first process, and slurmd.
nothing_runs() {
  local node all=''
  for node in n1 n2 n3 n4; do
    all+=$("$cluster" exec "$node" ps -eo pid=,comm= | awk '$1 != 1 && $2 !~ /^(slurmd|sleep|ps)$/')
  done
  equal "" "$all" >running.log
}
left_clean() {
  wait_for 30 nothing_runs || { cat running.log; return 1; }
  wait_for 30 no_drain
}

# continues NAME [ARGUMENT OF SBATCH...]: the next job goes on after the newest committed step.
continues() {
  local name=$1 newest job
  shift
  newest=$(newest_checkpoint "$name")
  job=$(submit "$name" "$@" -- train.global_batch=8 train.steps=$((newest + 2)))
  wait_for 60 ended "$job"
  grep -v " train: step " "$(basename "$name").out" || true
  equal COMPLETED "$(job_field "$job" JobState)"
  grep "\"kind\":\"load\",\"step\":$newest," "$name/metrics.jsonl"
  equal "$((newest + 1)) $((newest + 2))" "$(losses "$name" | tail -n 2 | cut -d' ' -f1 | paste -sd' ')"
}
