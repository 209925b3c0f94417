# SPDX-License-Identifier: Apache-2.0
"""Times parallel training of a 34M Llama in Trireme and in picotron (gloo), turn about.

Layouts: one rank with all threads, then two and four ranks with one thread each. Both do the same
work (small_llama.py). picotron runs 1F1B with the update that its own train.py chooses on
CPUs. Prints a table and, with --out, one JSON object a line.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import small_llama  # noqa: E402
from small_llama import MICRO_BATCH, MICRO_BATCHES, SEQ, WARM_UP_STEPS  # noqa: E402

sys.path.insert(0, str(HERE.parent / "pytorch"))
from compare import write_tokens  # noqa: E402

LAYOUTS = {  # name: (tensor, pipeline, data)
    "1": (1, 1, 1), "tp2": (2, 1, 1), "pp2": (1, 2, 1), "dp2": (1, 1, 2), "tp2xpp2": (2, 2, 1)}

# What a user would choose here: four pieces a stage shorten the bubble of four micro-batches, and
# the head, which has the last place alone, is worth 1.3 layers. With four ranks on two cores, others
# fill the bubble.
SCHEDULES = {"pp2": {"schedule": "interleaved", "virtual_stages": 4,
                     "stage_layers": "2,1,1,1,1,1,1,0"}}


def run_trireme(args, folder: Path, name: str, precision: str, threads: int) -> list:
    tensor, pipeline, data = LAYOUTS[name]
    parallel = {"tensor": tensor, "pipeline": pipeline, "data": data, **SCHEDULES.get(name, {})}
    text = small_llama.configuration(folder, parallel, precision, threads,
                                     WARM_UP_STEPS + args.steps)
    return small_llama.run_trireme(args, folder, math.prod(LAYOUTS[name]), text)[0]


def run_picotron(args, _folder, name: str, precision: str, threads: int) -> list:
    layout = LAYOUTS[name]
    ranks = math.prod(layout)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(ranks),
         str(HERE / "worker.py"), "--picotron", args.picotron, "--tensor", str(layout[0]),
         "--pipeline", str(layout[1]), "--data", str(layout[2]), "--precision", precision,
         "--threads", str(threads), "--steps", str(WARM_UP_STEPS + args.steps),
         "--seq", str(SEQ), "--micro-batch", str(MICRO_BATCH),
         "--micro-batches", str(MICRO_BATCHES)],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))["seconds"][WARM_UP_STEPS:]
    sys.exit(f"picotron failed: {done.stderr[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picotron", required=True, metavar="DIR", help="a checkout of picotron")
    parser.add_argument("--trireme", default="build/bin/trireme train", metavar="COMMAND")
    parser.add_argument("--mpirun", metavar="COMMAND",
                        default="mpirun --allow-run-as-root --oversubscribe --bind-to none")
    parser.add_argument("--layouts", nargs="+", choices=list(LAYOUTS), default=list(LAYOUTS))
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--cores", type=int, default=2, help="threads of the run with one rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="of each round")
    parser.add_argument("--out", help="JSON lines")
    parser.add_argument("--judge", action="store_true", help="only judge the arguments")
    args = parser.parse_args()
    if args.judge:
        return
    contenders = {"picotron": run_picotron, "trireme": run_trireme}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tokens(folder / "tokens", 1_000_000, vocabulary=small_llama.VOCABULARY)
        for precision in args.precisions:
            # Layouts take turns too: shares of the one-rank speed are ratios of one time.
            seconds = {(who, layout): [] for layout in args.layouts for who in contenders}
            for _ in range(args.rounds):
                for layout in args.layouts:
                    threads = args.cores if layout == "1" else 1
                    for who, run in contenders.items():
                        seconds[who, layout] += run(args, folder, layout, precision, threads)
            show(args, precision, seconds)


def show(args, precision: str, seconds: dict) -> None:
    speed = {}
    for (who, layout), times in seconds.items():
        tokens = SEQ * MICRO_BATCH * MICRO_BATCHES * LAYOUTS[layout][2]
        speed[who, layout] = tokens / statistics.median(times)
    for (who, layout), rate in speed.items():
        own = rate / speed[who, "1"] if (who, "1") in speed else float("nan")
        row = {"precision": precision, "layout": layout, "contender": who,
               "tokens_per_second": rate, "fastest_seconds": min(seconds[who, layout]),
               "share_of_own_one_rank": own,
               "ratio_to_picotron": rate / speed["picotron", layout]}
        print(f"{precision}  {layout:<8} {who:<9} {rate:9.1f} tok/s   best "
              f"{row['fastest_seconds']:7.3f} s   {100 * own:4.0f} % of its one rank   "
              f"{row['ratio_to_picotron']:5.2f} x picotron", flush=True)
        if args.out:
            with open(args.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
