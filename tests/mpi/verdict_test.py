# SPDX-License-Identifier: Apache-2.0
"""Runs that something on purpose holds back, and what the findings of `trireme report` call it: an
uneven stage, tiny micro-batches, a slow disk, starved data. Of good runs they say nothing. A slow
link: tests/slurm/slow_link_test.

usage: verdict_test.py --trireme FILE --mpirun FILE --volatile-fs FILE
"""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.dont_write_bytecode = True
from place import PAGES, Place  # noqa: E402

SKIPPED = 77
# Large enough for products to take most of a step; 512 tokens a micro-batch are not few.
MODEL = {"model.hidden_size": 128, "model.intermediate_size": 384, "model.num_hidden_layers": 4,
         "train.sequence_length": 512, "model.max_position_embeddings": 512, "train.global_batch": 4,
         "train.steps": 40, "train.eval_every": 0, "checkpoint.every_steps": 1000,
         "checkpoint.every_minutes": 0, "numerics.threads": 1}


def findings(place, name):
    """[rule] of a run's page, and the texts, but for what other tests take of the processors."""
    place.trireme("report", f"runs/{name}", "--out", f"{name}.html")
    page = (place.folder / f"{name}.html").read_text(encoding="utf-8")
    found = re.findall(r"<li><b>([a-z -]+)</b> ([^<]*)</li>", page)
    return [(rule, text) for rule, text in found if rule != "processors"]


@contextlib.contextmanager
def slow_folder(place, program, source, *words):
    """A file system in memory, beginning with what is in `source`, whose calls take their time."""
    mount, gone = place.folder / "mount", place.folder / "gone"
    for folder in (mount, gone, source):
        folder.mkdir(exist_ok=True)
    server = subprocess.Popen([str(word) for word in (program, source, gone, mount, *words)])
    try:
        until = time.monotonic() + 20
        while not os.path.ismount(mount):
            assert server.poll() is None and time.monotonic() < until, "it does not start"
            time.sleep(0.01)
        yield mount
    finally:
        for _ in range(100):
            if subprocess.run(["fusermount3", "-u", mount], check=False).returncode == 0:
                break
            time.sleep(0.1)
        server.wait(timeout=20)


def judge(place, name, ranks, settings, expected):
    place.train(ranks, name, settings)
    found = findings(place, name)
    print(f"{name}: {found or 'nothing'}", flush=True)
    assert [rule for rule, _ in found] == expected, (name, expected, found)
    return found


def starved(place, program):
    """Storage that takes 50 ms for a page of tokens, of which nothing stays in memory."""
    source = place.folder / "many"
    source.mkdir()
    place.trireme("data", "prepare", "--input", *PAGES, "--tokenizer", "tokenizer.json", "--out",
                  source / "tokens")
    with slow_folder(place, program, source, "--slow-reads", 50) as folder:
        found = judge(place, "starved", 1, {"data.train": folder / "tokens"}, ["data"])
    assert "the storage of data.train is slow" in found[0][1]


def main():
    parser = argparse.ArgumentParser()
    for name in ("trireme", "mpirun", "volatile-fs"):
        parser.add_argument(f"--{name}", required=True, type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()
    if not os.path.exists("/dev/fuse"):
        print("no /dev/fuse")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="trireme-verdict-") as text:
        place = Place(options.trireme, pathlib.Path(text), options.mpirun, settings=MODEL)
        place.make_tokens()
        judge(place, "good", 1, {}, [])
        judge(place, "good-on-two", 2, {"train.global_batch": 16}, [])
        uneven = judge(place, "uneven", 2, {
            "parallel.pipeline": 2, "model.num_hidden_layers": 8, "parallel.stage_layers": "2,6",
            "train.global_batch": 16}, ["stages"])
        assert "stage 1 has more work than the others" in uneven[0][1]
        judge(place, "tiny", 1, {"train.sequence_length": 8, "train.global_batch": 64},
              ["micro-batches"])
        with slow_folder(place, options.volatile_fs, place.folder / "empty", "--slow-syncs", 40) as folder:
            judge(place, "slow-disk", 1, {
                "checkpoint.every_steps": 5, "checkpoint.asynchronous": "false",
                "checkpoint.directory": folder / "steps"}, ["saves"])
        starved(place, options.volatile_fs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
