# SPDX-License-Identifier: Apache-2.0
# Something to train: a tokenizer and tokens from this repository's own pages, and a configuration
# small enough for many ranks on few cores. Sourced after plugin.bash.
prepare_training() {
  "$program" tokenizer train --input "$source_folder"/docs/*.md --vocab-size 512 --out tokenizer.json
  "$program" data prepare --input "$source_folder"/docs/*.md --tokenizer tokenizer.json --out tokens
  cat >tiny.conf <<END
include = $source_folder/configs/debug-tiny.conf
data.train = $PWD/tokens
train.log_every = 1
END
}
# More ranks than cores is normal here.
export OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# losses RUN: "step loss" of each step, as they are in metrics.jsonl
losses() {
  sed -n 's/.*"kind":"train","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"
}
# The last step that RUN has done.
last_step() { losses "$1" 2>/dev/null | tail -n 1 | cut -d' ' -f1; }
# has_step RUN STEP
has_step() { local last; last=$(last_step "$1"); ((${last:-0} >= $2)); }
# job_field JOB FIELD: what scontrol says
job_field() { run scontrol show job "$1" | grep -o "\b$2=[^ ]*" | head -n 1 | cut -d= -f2; }
# shellcheck disable=SC2034  # for the tests that source this
pmix=(srun -Q --mpi=pmix --kill-on-bad-exit=0 --wait=10)
