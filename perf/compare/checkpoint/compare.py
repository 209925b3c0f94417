# SPDX-License-Identifier: Apache-2.0
"""Trains GPT-2 124M on two ranks (data-parallel, ZeRO level 1) with a save every few steps, and reads
metrics.jsonl: how long training stood still for a save, and how fast steps were while one was being
written and while none was. Then lets PyTorch save as many bytes from two processes."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONFIG = """
model.architecture = gpt2
model.vocab_size = 50257
model.hidden_size = 768
model.num_hidden_layers = 12
model.num_attention_heads = 12
model.max_position_embeddings = 1024
parallel.data = 2
parallel.zero_level = 1
train.sequence_length = 256
train.micro_batch = 1
train.global_batch = 2
train.log_every = 1
train.eval_every = 0
train.steps = {steps}
optimizer.warmup_steps = 1
numerics.precision = fp32
numerics.threads = 1
data.train = {folder}/tokens
data.validation =
checkpoint.every_steps = {every}
checkpoint.every_minutes = 0
checkpoint.keep_last = 1
checkpoint.asynchronous = {asynchronous}
run.directory = {folder}/run
"""


def run(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def train(folder, saves, every, asynchronous):
    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "gpt2.conf").write_text(
        CONFIG.format(folder=folder, every=every, steps=every * (saves + 1), asynchronous=asynchronous))
    run([ROOT / "tests/support/mpirun", "2", ROOT / "build/bin/trireme", "-q", "train", folder / "gpt2.conf"],
        env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]


def told(what, lines):
    """One line of figures of the saves in lines of metrics.jsonl."""
    plain, beside, running = [], [], None
    by_step = {line["step"]: line for line in lines if line["kind"] == "train"}
    saves = [line for line in lines if line["kind"] == "save"]
    # The last one of a run is waited for.
    saves = saves[:-1]
    order = [line for line in lines if line["kind"] in ("train", "save")]
    open_until = {}
    for index, line in enumerate(order):
        if line["kind"] == "save":
            open_until[line["step"]] = max(each["step"] for each in order[:index] if each["kind"] == "train")
    inside = {step for begin, end in open_until.items() for step in range(begin + 1, end + 1)}
    for step, line in sorted(by_step.items()):
        if step > 2:
            (beside if step in inside else plain).append(line["step_ms"])
    stalls = [line["stall_ms"] for line in saves]
    writes = [line["write_ms"] for line in saves]
    normal = statistics.median(plain)
    text = (f"{what}: {len(saves)} saves of {saves[0]['bytes'] / 1e9:.2f} GB; stall median {statistics.median(stalls):.1f} ms "
            f"(largest {max(stalls):.1f}; 5 % of a step is {0.05 * normal:.1f}); written in {statistics.median(writes):.0f} ms; "
            f"step {normal:.0f} ms")
    if beside:
        text += (f", while a save is written {statistics.median(beside):.0f} ms, mean {statistics.mean(beside):.0f} of {len(beside)}"
                 f" (throughput {100 * normal / statistics.mean(beside):.1f} %)")
    print(text, flush=True)
    return saves[0]["bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=10)
    parser.add_argument("--every", type=int, default=6, help="steps between saves")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/compare-checkpoint")
    parser.add_argument("--no-pytorch", action="store_true")
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge:
        return
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = ROOT / "build/bin/trireme"
    pages = sorted((ROOT / "docs").glob("*.md"))
    run([program, "tokenizer", "train", "--input", *pages, "--vocab-size", "512", "--out", folder / "tokenizer.json"])
    run([program, "data", "prepare", "--input", *pages, "--tokenizer", folder / "tokenizer.json", "--out", folder / "tokens"])
    for asynchronous in ("true", "false"):
        size = told(f"trireme, asynchronous = {asynchronous}",
                    train(folder, arguments.saves, arguments.every, asynchronous))
    shutil.rmtree(folder / "run")
    if not arguments.no_pytorch:
        print(run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                   pathlib.Path(__file__).with_name("worker.py"), folder / "dcp", size, arguments.saves],
                  env={**os.environ, "OMP_NUM_THREADS": "1"}), end="")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
