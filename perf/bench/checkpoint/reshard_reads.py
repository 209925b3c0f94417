#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks read when a checkpoint of one layout is loaded in another: for 12 pairs the largest of
any rank's bytes read over those of its boxes, and bytes and rate of all. Ends with 1 above 1.05.

usage: reshard_reads.py TRIREME [--folder FOLDER] [--hidden-size N] [--layers N]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "fault"))
sys.dont_write_bytecode = True

from train_fault_test import write_tokens  # noqa: E402

BAR = 1.05
# Ranks, pipeline, tensor, ZeRO level; the rest is data parallel.
LAYOUTS = [(1, 1, 1, 0), (2, 1, 1, 0), (2, 1, 1, 1), (2, 1, 2, 0), (2, 2, 1, 0), (4, 2, 2, 0),
           (4, 1, 2, 1), (4, 1, 4, 0), (4, 4, 1, 0), (4, 1, 1, 1), (4, 2, 1, 1), (8, 2, 2, 1)]
# From each layout to the fifth after it.
PAIRS = [(at, (at + 5) % len(LAYOUTS)) for at in range(len(LAYOUTS))]


def text(layout):
    ranks, pipeline, tensor, zero = layout
    return f"pp{pipeline} dp{ranks // pipeline // tensor} tp{tensor} zero{zero}"


def train(arguments, folder, run, layout, *more):
    ranks, pipeline, tensor, zero = layout
    settings = ["model.architecture=gpt2", "model.vocab_size=50304", "model.num_attention_heads=12",
                f"model.hidden_size={arguments.hidden_size}",
                f"model.num_hidden_layers={arguments.layers}", "train.sequence_length=16",
                "train.global_batch=4", "train.steps=1", "numerics.precision=fp32",
                "numerics.peak_flops=1e12", "run.binding=none", f"data.train={folder / 'tokens'}",
                f"run.directory={folder / run}", f"parallel.pipeline={pipeline}",
                f"parallel.tensor={tensor}", f"parallel.zero_level={zero}", *more]
    config = folder / "gpt2.conf"
    config.write_text("# All by --set.\n")
    command = [ROOT / "tests/support/mpirun", str(ranks), arguments.trireme, "train", config]
    for setting in settings:
        command += ["--set", setting]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{text(layout)} ended with {result.returncode}: {result.stderr[-2000:]}")


def existing_folder(path):
    if not pathlib.Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{path} is no folder; make it, on the disk to read from")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trireme")
    parser.add_argument("--folder", type=existing_folder, default=None)
    parser.add_argument("--hidden-size", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    arguments = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        write_tokens(folder / "tokens")
        for number, (saved, loaded) in enumerate(PAIRS):
            train(arguments, folder, "saved", LAYOUTS[saved])
            train(arguments, folder, f"loaded-{number}", LAYOUTS[loaded],
                  f"checkpoint.load={folder / 'saved'}")
            lines = (folder / f"loaded-{number}" / "metrics.jsonl").read_text().splitlines()
            load = next(line for line in map(json.loads, lines) if line["kind"] == "load")
            worst = max(worst, load["read_ratio"])
            print(f"{text(LAYOUTS[saved]):<20} to {text(LAYOUTS[loaded]):<20} ratio "
                  f"{load['read_ratio']:.3f}  {load['bytes'] / 1e9:.2f} GB at "
                  f"{load['bytes_per_second'] / 1e9:.2f} GB/s", flush=True)
            for run in ["saved", f"loaded-{number}"]:
                subprocess.run(["rm", "-rf", folder / run], check=True)
    print(f"largest ratio {worst:.3f} (bar {BAR})")
    return 1 if worst > BAR else 0


if __name__ == "__main__":
    sys.exit(main())
