# SPDX-License-Identifier: Apache-2.0
"""Times GPT-2 124M training in Trireme and in PyTorch, turn about on one machine.

In every round each contender trains a few steps while the others wait, so that a busy machine
disturbs all alike. Both do the same work: forward, backward, clipping and an AdamW update over
the full vocabulary. Prints a table and, with --out, one JSON object a line.
"""

import argparse
import array
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VOCABULARY = 50257
WARM_UP_STEPS = 2


def write_tokens(prefix: Path, count: int = 2_000_000, vocabulary: int = VOCABULARY) -> None:
    """Random tokens as a Megatron token file of one document."""
    numbers = random.Random(1)
    tokens = array.array("H", (numbers.randrange(vocabulary) for _ in range(count)))
    prefix.with_suffix(".bin").write_bytes(tokens.tobytes())
    uint16_code = 8
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, uint16_code, 1, 2)
    prefix.with_suffix(".idx").write_bytes(head + struct.pack("<iqqq", count, 0, 0, 1))


def configuration(args, folder: Path, batch: int, seq: int, precision: str, steps: int) -> str:
    return f"""
[model]
architecture = gpt2
vocab_size = {VOCABULARY}
hidden_size = 768
num_hidden_layers = 12
num_attention_heads = 12
max_position_embeddings = 1024
[train]
steps = {steps}
sequence_length = {seq}
micro_batch = {batch}
global_batch = {batch}
[optimizer]
curve = constant
clip_norm = 1
[numerics]
precision = {precision}
threads = {args.threads}
[data]
train = {folder / "tokens"}
[run]
directory = {folder / "run"}
"""


class Trireme:
    name = "trireme"

    def __init__(self, args, folder, batch, seq, precision):
        self.make = lambda steps: configuration(args, folder, batch, seq, precision, steps)
        self.command, self.folder = args.trireme, folder
        self.seconds, self.cpu_seconds, self.peak_rss_bytes = [], [], 0

    def run(self, steps: int) -> None:
        run = self.folder / "run"
        subprocess.run(["rm", "-rf", str(run)], check=True)
        config = self.folder / "trireme.conf"
        config.write_text(self.make(WARM_UP_STEPS + steps), encoding="utf-8")
        with open(self.folder / "trireme.log", "w", encoding="utf-8") as log:
            child = subprocess.Popen([*self.command.split(), str(config)], stdout=log, stderr=log)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"trireme failed: {(self.folder / 'trireme.log').read_text()[-2000:]}")
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps_done = [line["step_ms"] / 1000 for line in lines if line["kind"] == "train"]
        self.seconds += steps_done[WARM_UP_STEPS:]
        self.peak_rss_bytes = max(self.peak_rss_bytes, usage.ru_maxrss * 1024)

    def end(self) -> None:
        subprocess.run(["rm", "-rf", str(self.folder / "run")], check=True)


class PyTorch:
    def __init__(self, args, mode, batch, seq, precision):
        self.name = f"pytorch {mode}"
        self.seconds, self.cpu_seconds, self.peak_rss_bytes = [], [], 0
        self.child = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), "--batch", str(batch), "--seq", str(seq),
             "--precision", precision, "--mode", mode, "--threads", str(args.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
        self._order(WARM_UP_STEPS)

    def _order(self, steps: int) -> dict:
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            sys.exit(f"{self.name} ended with code {self.child.wait()}")
        return json.loads(answer)

    def run(self, steps: int) -> None:
        answer = self._order(steps)
        self.seconds += answer["seconds"]
        self.cpu_seconds += answer["cpu_seconds"]
        self.peak_rss_bytes = answer["peak_rss_bytes"]

    def end(self) -> None:
        self.child.stdin.close()
        self.child.wait()


def compare(args, folder: Path, batch: int, seq: int, precision: str) -> list:
    contenders = [PyTorch(args, mode, batch, seq, precision) for mode in args.modes]
    if args.trireme:
        contenders.append(Trireme(args, folder, batch, seq, precision))
    steps = args.steps or max(2, 2048 // (batch * seq))
    for _ in range(args.rounds):
        for contender in contenders:
            contender.run(steps)
    rows = []
    for contender in contenders:
        contender.end()
        median = statistics.median(contender.seconds)
        rows.append({
            "batch": batch, "seq": seq, "precision": precision, "contender": contender.name,
            "threads": args.threads, "steps": len(contender.seconds), "median_seconds": median,
            "fastest_seconds": min(contender.seconds), "tokens_per_second": batch * seq / median,
            "peak_rss_bytes": contender.peak_rss_bytes})
    return rows


def show(rows: list) -> None:
    peers = [row["tokens_per_second"] for row in rows if row["contender"] != "trireme"]
    for row in rows:
        ratio = row["tokens_per_second"] / max(peers) if peers else float("nan")
        print(f"B{row['batch']} T{row['seq']:<5} {row['precision']}  {row['contender']:<16}"
              f"{row['tokens_per_second']:9.1f} tok/s   best {row['fastest_seconds']:7.3f} s"
              f"   {ratio:5.2f} x the better PyTorch   peak {row['peak_rss_bytes'] / 2**30:5.2f} GiB",
              flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trireme", default="", metavar="COMMAND",
                        help="how to start training, such as 'build/bin/trireme train'; empty: PyTorch alone")
    parser.add_argument("--shapes", nargs="+", default=["4x64", "1x1024", "4x1024"])
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="of each round; 0: by shape")
    parser.add_argument("--out", help="JSON lines")
    parser.add_argument("--judge", action="store_true", help="only judge the arguments")
    args = parser.parse_args()
    if args.judge:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tokens(folder / "tokens")
        for shape in args.shapes:
            batch, seq = map(int, shape.split("x"))
            for precision in args.precisions:
                rows = compare(args, folder, batch, seq, precision)
                show(rows)
                if args.out:
                    with open(args.out, "a", encoding="utf-8") as out:
                        out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
