# SPDX-License-Identifier: Apache-2.0
# What is asked of Slurm in many tests. Sourced where run, cluster and cluster_folder are known.

# The plugin's folder on a node.
base_of() { echo "$cluster_folder/spool/$1/trireme"; }
# A batch script of the lines given; runs it to its end and prints what it wrote.
batch() { # LINES [ARGUMENT OF SBATCH...]
  printf '#!/bin/bash\n%s\n' "$1" >job.sh
  shift
  rm -f batch.out
  run sbatch --wait -o batch.out "$@" job.sh >sbatch.log 2>&1 || { cat sbatch.log; }
  cat batch.out
}
# Jobs that are neither over nor ending.
no_job() { equal "" "$(run squeue --noheader --states=all --format='%i %T' | grep -v COMPLET || true)"; }
# Every node can take jobs.
no_drain() { equal "" "$(run sinfo --noheader --Node --format='%N %t' | grep -vE 'idle|comp|mix|plnd' || true)"; }

# wait_for SECONDS COMMAND...
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do ((SECONDS < end)) || { echo "waited too long for: $*"; return 1; }; sleep 0.2; done
}
state() { run squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null; }
ended() { [[ $(state "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }
running() { [[ $(state "$1") == RUNNING ]]; }
restarts() { [[ $(run scontrol show job "$1") == *"Restarts=$2 "* ]]; }

# The contract as a task sees it, of what env printed.
asked() { grep -oE '^(TRIREME_(LAUNCH|TENSOR|PIPELINE|DATA|ZERO|MICRO|ORDER|BINDING|SIGNAL|SET)[A-Z_]*|SLURM_TRIREME)=.*' | grep -v '^TRIREME_LAUNCH_' | sort; }

# refuses TEXT ARGUMENT...: srun, sbatch and salloc refuse the request in these words, each with exit
# code 2, and no job exists afterwards.
refuses() {
  local text=$1 command output status before
  shift
  [[ -e true.sh ]] || printf '#!/bin/bash\ntrue\n' >true.sh
  before=$(last_job)
  for command in srun sbatch salloc; do
    local last=true
    [[ $command == sbatch ]] && last=true.sh
    status=0
    output=$(run timeout 20 $command "$@" $last 2>&1) || status=$?
    equal 2 "$status"
    holds "$output" "$text"
    [[ $output != *allocation* && $output != *Submitted* ]]
  done
  equal "$before" "$(last_job)"
}
refused() { # SENTENCE TEXT ARGUMENT...
  local sentence=$1
  shift
  check "refused: $sentence" refuses "$@"
}
# The number that the next job will get: it grows with every job that ever existed.
last_job() { run scontrol show config | sed -n 's/^NEXT_JOB_ID *= //p'; }
