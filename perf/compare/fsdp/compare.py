# SPDX-License-Identifier: Apache-2.0
"""Times a 34M Llama at ZeRO level 3 in Trireme and with PyTorch's fully_shard (gloo), turn about.

Both do the same work on random tokens: sequences of 256, micro-batches of 2, 4 of them for each
rank, AdamW, no clipping, one thread a rank. PyTorch's side shards table, blocks and head apart, and
reduces gradients after each micro-batch (`each`) or keeps them whole until the last (`last`), which
is faster and takes more memory. Prints a table and, with --out, one JSON object a line.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import small_llama  # noqa: E402

sys.path.insert(0, str(HERE.parent / "pytorch"))
from compare import write_tokens  # noqa: E402


def run_trireme(args, folder: Path, level: int) -> tuple[list, int]:
    steps = small_llama.WARM_UP_STEPS + args.steps
    parallel = {"data": args.ranks, "zero_level": level}
    text = small_llama.configuration(folder, parallel, args.precision, 1, steps)
    return small_llama.run_trireme(args, folder, args.ranks, text)


def run_pytorch(args, _folder: Path, reduces: str) -> tuple[list, int]:
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(args.ranks),
         str(HERE / "worker.py"), "--reduces", reduces, "--precision", args.precision,
         "--steps", str(small_llama.WARM_UP_STEPS + args.steps)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            result = json.loads(line.removeprefix("RESULT "))
            return result["seconds"][small_llama.WARM_UP_STEPS:], result["peak_rss_bytes"]
    sys.exit(f"PyTorch failed: {done.stderr[-2000:]}")


CONTENDERS = {
    "fully_shard each": lambda args, folder: run_pytorch(args, folder, "each"),
    "fully_shard last": lambda args, folder: run_pytorch(args, folder, "last"),
    "trireme 3": lambda args, folder: run_trireme(args, folder, 3),
    "trireme 1": lambda args, folder: run_trireme(args, folder, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trireme", default="build/bin/trireme train", metavar="COMMAND")
    parser.add_argument("--mpirun", metavar="COMMAND",
                        default="mpirun --allow-run-as-root --oversubscribe --bind-to none")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS),
                        default=list(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="of each round")
    parser.add_argument("--out", help="JSON lines")
    parser.add_argument("--judge", action="store_true", help="only judge the arguments")
    args = parser.parse_args()
    if args.judge:
        return
    seconds = {name: [] for name in args.contenders}
    peaks = {name: 0 for name in args.contenders}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tokens(folder / "tokens", 1_000_000, vocabulary=small_llama.VOCABULARY)
        for _ in range(args.rounds):
            for who in args.contenders:
                times, peak = CONTENDERS[who](args, folder)
                seconds[who] += times
                peaks[who] = max(peaks[who], peak)
    show(args, seconds, peaks)


def show(args, seconds: dict, peaks: dict) -> None:
    tokens = (small_llama.SEQ * small_llama.MICRO_BATCH * small_llama.MICRO_BATCHES * args.ranks)
    speed = {who: tokens / statistics.median(times) for who, times in seconds.items()}
    peers = [rate for who, rate in speed.items() if not who.startswith("trireme")]
    fastest = max(peers, default=float("nan"))
    for who, rate in speed.items():
        row = {"precision": args.precision, "ranks": args.ranks, "contender": who,
               "tokens_per_second": rate, "fastest_seconds": min(seconds[who]),
               "peak_rss_bytes": peaks[who], "ratio_to_faster_pytorch": rate / fastest}
        print(f"{args.precision}  {who:<16} {rate:9.1f} tok/s   best {row['fastest_seconds']:7.3f} s"
              f"   {row['ratio_to_faster_pytorch']:5.2f} x the faster PyTorch   peak of a rank "
              f"{peaks[who] / 2**30:5.2f} GiB", flush=True)
        if args.out:
            with open(args.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
