# SPDX-License-Identifier: Apache-2.0
"""The 34M Llama that parallel trainers are compared with on CPUs, and how Trireme trains it:
sequences of 256 of random tokens, micro-batches of 2, 4 of them for each data-parallel replica,
AdamW, no clipping."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SEQ, MICRO_BATCH, MICRO_BATCHES = 256, 2, 4
VOCABULARY = 8192
WARM_UP_STEPS = 2


def configuration(folder: Path, parallel: dict, precision: str, threads: int, steps: int) -> str:
    """`parallel`: keys of that section, with `data`."""
    keys = "\n".join(f"{key} = {value}" for key, value in parallel.items())
    return f"""
[model]
architecture = llama
vocab_size = {VOCABULARY}
hidden_size = 512
intermediate_size = 1408
num_hidden_layers = 8
num_attention_heads = 8
max_position_embeddings = {SEQ}
tie_word_embeddings = false
[parallel]
{keys}
[train]
steps = {steps}
sequence_length = {SEQ}
micro_batch = {MICRO_BATCH}
global_batch = {MICRO_BATCH * MICRO_BATCHES * parallel["data"]}
[optimizer]
curve = constant
clip_norm = 0
[numerics]
precision = {precision}
threads = {threads}
[data]
train = {folder / "tokens"}
[run]
directory = {folder / "run"}
"""


def run_trireme(args, folder: Path, ranks: int, text: str) -> tuple[list, int]:
    """Seconds of each step behind the first ones, and the largest peak of a rank's memory, bytes.
    `args`: trireme, mpirun."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    config = folder / "trireme.conf"
    config.write_text(text, encoding="utf-8")
    launcher = args.mpirun.split() + ["-n", str(ranks)] if ranks > 1 else []
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    log = folder / "trireme.log"
    with open(log, "w", encoding="utf-8") as out:
        child = subprocess.Popen([*launcher, *args.trireme.split(), str(config)], env=environment,
                                 stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"trireme failed: {log.read_text(encoding='utf-8')[-2000:]}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = [line["step_ms"] / 1000 for line in lines if line["kind"] == "train"]
    return seconds[WARM_UP_STEPS:], usage.ru_maxrss * 1024
