#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains what scripts/quickstart trains, half as wide and on half as long sequences (bf16 is slow on
CPUs that do not have it), for 200 steps in fp32 and in bf16, from the same seed on the same text:
the held-out losses must be within 1 % of each other.

usage: precision_test.py --trireme FILE --config FILE [--text FILE] [--steps N]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

WITHIN = 0.01
SMALLER = {"model.hidden_size": 128, "model.intermediate_size": 352, "model.num_attention_heads": 4,
           "model.num_key_value_heads": 2, "train.sequence_length": 128}
# Of the first step's loss: two runs that learn nothing would agree.
FALLS = 0.2


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("trireme", "config"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, default="/usr/share/dictd/gcide.dict.dz")
    parser.add_argument("--steps", type=int, default=200)
    return parser.parse_args()


def run(*command):
    end = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                         timeout=1200, check=False)
    if end.returncode != 0:
        sys.exit(f"{command}\nended with {end.returncode}\n{end.stderr}")


def losses(options, folder, precision):
    """Of the first step, and held out after the last."""
    settings = SMALLER | {
        "run.directory": folder / precision, "numerics.precision": precision,
        "data.train": folder / "text", "data.validation": folder / "text.validation",
        "data.tokenizer": folder / "tokenizer.json", "train.steps": options.steps,
        "train.eval_every": options.steps, "checkpoint.every_steps": 0,
        "parallel.tensor": 1, "parallel.pipeline": 1}
    run(options.trireme, "-q", "train", options.config,
        *[word for key, value in settings.items() for word in ("--set", f"{key}={value}")])
    lines = [json.loads(line)
             for line in (folder / precision / "metrics.jsonl").read_text().splitlines()]
    first = next(line["loss"] for line in lines if line["kind"] == "train")
    held_out = [line["loss"] for line in lines
                if line["kind"] == "eval" and line["step"] == options.steps]
    assert len(held_out) == 1, "the last step is evaluated once"
    return first, held_out[0]


def main():
    options = arguments()
    if not options.text.exists():
        print(f"TRIREME_SKIP: there is no '{options.text}' (package dict-gcide)")
        return 0
    with tempfile.TemporaryDirectory(prefix="trireme-precision-") as name:
        folder = pathlib.Path(name)
        # As scripts/quickstart makes them.
        run(options.trireme, "tokenizer", "train", "--input", options.text, "--vocab-size", 4096,
            "--out", folder / "tokenizer.json")
        run(options.trireme, "data", "prepare", "--input", options.text, "--document-separator",
            r"\n\n(?=\S)", "--tokenizer", folder / "tokenizer.json", "--validation-fraction",
            0.005, "--out", folder / "text")
        first, exact = losses(options, folder, "fp32")
        _, rounded = losses(options, folder, "bf16")
    away = abs(rounded - exact) / exact
    print(f"after {options.steps} steps: held-out loss {exact:.4f} in fp32 (the first step's is "
          f"{first:.4f}), {rounded:.4f} in bf16: {100 * away:.3f} % away")
    # A comparison with what is not a number is false.
    passed = away <= WITHIN and exact <= (1 - FALLS) * first and rounded != exact
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
