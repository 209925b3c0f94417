# SPDX-License-Identifier: Apache-2.0
"""A run on a file system that loses at power cuts what was not synced: it goes on from the newest
step that it has called saved, or a newer one, and ends with the state of an undisturbed run. On a
disk that loses what was synced, too, the loss is found and an older step is used.

usage: power_cut_test.py --mpirun SCRIPT --trireme FILE --config FILE --volatile-fs FILE
                         [--cuts N] [--steps N] [--seed N]
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from fault_test import Checks
from kill_loop_test import newest_step
from run_directory_test import Directories

SKIPPED = 77


class Volatile:
    """The folder `name` of a place, on that file system."""

    def __init__(self, place, program, *words):
        self.place, self.program, self.words = place, program, words
        self.mount = place.folder / "volatile"
        self.disk = place.folder / "disk-0"
        self.cuts = 0
        self.mount.mkdir(exist_ok=True)
        self.disk.mkdir(exist_ok=True)

    def __enter__(self):
        self.next = self.place.folder / f"disk-{self.cuts + 1}"
        self.server = subprocess.Popen([self.program, self.disk, self.next, self.mount, *self.words])
        until = time.time() + 20
        while not os.path.ismount(self.mount):
            if self.server.poll() is not None or time.time() > until:
                raise OSError("the file system of the test does not start")
            time.sleep(0.01)
        return self

    def cut(self, number):
        (self.mount / ".power-cut").write_text(str(number))
        self.disk = self.next

    def __exit__(self, *_):
        for _ in range(100):
            if subprocess.run(["fusermount3", "-u", self.mount], check=False).returncode == 0:
                break
            time.sleep(0.1)
        self.server.wait(timeout=20)
        self.cuts += 1


def newest_saved(run):
    """The newest step that metrics.jsonl calls saved; a cut may have left half lines in it."""
    newest = 0
    for line in (run / "metrics.jsonl").read_bytes().split(b"\n"):
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict) and facts["kind"] == "save":
            newest = max(newest, facts["step"])
    return newest


def train_until_cut(volatile, place, dice, settings, fewest):
    """The newest step that the run has called saved when the power goes."""
    launcher = place.begin(2, "volatile/run", settings)
    run = volatile.mount / "run"
    goal = newest_step(run) + dice.randint(fewest, 4)
    until = time.time() + 60
    while newest_step(run) < goal and launcher.poll() is None and time.time() < until:
        time.sleep(0.002)
    time.sleep(dice.uniform(0, 0.03))
    saved = newest_saved(run)
    volatile.cut(dice.randint(1, 10**9))
    for process in place.processes("volatile/run"):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return saved, launcher.communicate(timeout=60)[0]


def check_cuts(check, place, arguments, words):
    lies = bool(words)
    dice = random.Random(arguments.seed)
    settings = {"train.steps": arguments.steps, "checkpoint.every_steps": 1,
                "checkpoint.keep_last": 0 if lies else 2,
                # What it does to storage is the same beside training, and quicker without it.
                "checkpoint.asynchronous": "false"}
    # A disk that lies keeps the last eight files to itself: three steps of three files later at least
    # the first is whole, without which no start could go on.
    fewest = 4 if lies else 1
    volatile = Volatile(place, arguments.volatile_fs, *words)
    words_of_all = ""
    for cut in range(arguments.cuts):
        with volatile:
            saved, said = train_until_cut(volatile, place, dice, settings, fewest)
        words_of_all += said
        left = newest_step(volatile.disk / "run")
        check(lies or left >= saved, f"cut {cut}: step {saved} was saved, {left} is left: {said}")
    # The end, on a disk that stays.
    (place.folder / "cut").symlink_to(volatile.disk / "run")
    words_of_all += place.train(2, "cut", settings)
    unused = words_of_all.count("is not used")
    check((unused > 0) == lies, f"{unused} steps were not used: {words_of_all}")
    said = place.trireme("checkpoint", "diff", place.folder / "whole", place.folder / "cut",
                         "--must-be-equal")
    check("are the same, bit by bit" in said, f"the final states: {said}")
    print(f"{arguments.cuts} power cuts{' of a disk that loses synced files' if lies else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config", "--volatile-fs"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=20261123)
    arguments = parser.parse_args()
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: /dev/fuse is not there")
        return SKIPPED
    check = Checks()
    for words in [[], ["--lose-file-syncs"]]:
        with tempfile.TemporaryDirectory(prefix="trireme-power-cut-") as name:
            place = Directories(arguments, pathlib.Path(name))
            place.train(2, "whole", {"train.steps": arguments.steps})
            check_cuts(check, place, arguments, words)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
