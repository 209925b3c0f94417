# SPDX-License-Identifier: Apache-2.0
"""A run that is killed over and over, one rank or all at once, at any moment of start-up, step and
save, and starts again each time in another layout: it consumes every sample once, and its state at
the end is that of a run that nothing has disturbed. A second run moves between layouts that add in
other orders: its losses stay within 1e-5.

usage: kill_loop_test.py --mpirun SCRIPT --trireme FILE --config FILE [--kills N] [--steps N]
                         [--seed N] [--optimizer NAME]
--steps: at least so many, whether kills come faster or not.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from fault_test import Checks
from run_directory_test import Directories

GLOBAL_BATCH = 12
# All of them add in the same order, so that they must give the same bits: two data-parallel ranks.
LAYOUTS = [(ranks, {"parallel.zero_level": level, "parallel.pipeline": ranks // 2})
           for ranks in (2, 4) for level in (0, 1, 3)]
# Others, each of which adds in an order of its own.
ELSEWHERE = [(1, {}), (2, {"parallel.tensor": 2}), (4, {"parallel.tensor": 2}),
             (3, {"parallel.pipeline": 3}), (4, {"parallel.tensor": 2, "parallel.pipeline": 2}),
             (4, {"train.micro_batch": 3}), (2, {"parallel.zero_level": 2}),
             (2, {"parallel.context": 2}), (4, {"parallel.context": 2, "parallel.zero_level": 3})]


def newest_step(run):
    """The newest committed step; 0 without any."""
    return max((int(path.name[5:]) for path in (run / "checkpoints").glob("step-*")
                if path.name[5:].isdigit()), default=0)


def last_line_step(run):
    """Of the last lines of metrics.jsonl, which is read often; 0 without any."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            lines = file.read().decode().split("\n")[:-1]
    except FileNotFoundError:
        return 0
    return next((json.loads(line)["step"] for line in reversed(lines)
                 if line.startswith('{"kind":"train"')), 0)


def strike(place, run, launcher, dice):
    """Kills one rank or all at a moment of this start; False if it has ended before."""
    moment = dice.choice(["start", "step", "step", "step", "save", "save"])
    goal = last_line_step(run) + dice.randint(1, 3)
    begin = time.monotonic()
    delay = dice.uniform(0, 0.6)
    while launcher.poll() is None:
        if moment == "start" and time.monotonic() - begin > delay:
            break
        if moment == "step" and last_line_step(run) >= goal:
            time.sleep(dice.uniform(0, 0.02))
            break
        if moment == "save" and last_line_step(run) >= goal - 1 and any(
                (run / "checkpoints").glob("*.tmp-*")):
            time.sleep(dice.uniform(0, 0.01))
            break
        time.sleep(0.002)
    strikes_all = dice.random() < 0.3
    killed = False
    # The launcher may not have started them yet.
    while not killed and launcher.poll() is None:
        ranks = place.processes(run.name)
        for process in ranks if strikes_all else dice.sample(ranks, min(1, len(ranks))):
            try:
                os.kill(process, signal.SIGKILL)
                killed = True
            except ProcessLookupError:
                pass
    return killed and launcher.wait(timeout=60) != 0


def move_between_layouts(check, place, dice, settings, model):
    """Kills and starts a run again in each layout of ELSEWHERE, after two steps or more."""
    run = place.folder / "moved"
    for ranks, layout in ELSEWHERE:
        goal = newest_step(run) + 2
        launcher = place.begin(ranks, "moved", settings | layout)
        while launcher.poll() is None and newest_step(run) < goal:
            time.sleep(0.002)
        for process in dice.sample(place.processes("moved"), 1):
            os.kill(process, signal.SIGKILL)
        said = launcher.communicate(timeout=60)[0]
        check(newest_step(run) >= goal, f"on {ranks} ranks with {layout}: {said}")
    steps = newest_step(run) + 4
    place.train(2, "moved", settings | {"train.steps": steps})
    place.train(2, "still", model | {"train.steps": steps})
    moved, still = ({line["step"]: line["loss"] for line in place.lines(name, "train")}
                    for name in ("moved", "still"))
    check(moved.keys() == still.keys() == set(range(1, steps + 1)), f"steps {sorted(moved)}")
    away = max(abs(moved[step] / still[step] - 1) for step in still)
    check(away < 1e-5, f"losses of the moved run are {away} away")
    print(f"{steps} steps in {len(ELSEWHERE) + 1} layouts: losses at most {away:.1e} away")


def check_ledger(check, place, steps):
    """Each sample once, in the lineage that led to the last step."""
    consumed = {}
    for line in place.lines("killed", "train"):
        consumed[line["step"]] = line["first_sample"]
    wanted = {step: (step - 1) * GLOBAL_BATCH for step in range(1, steps + 1)}
    check(consumed == wanted, f"samples: {set(consumed.items()) ^ set(wanted.items())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--optimizer", default="adamw")
    arguments = parser.parse_args()
    check = Checks()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="trireme-kill-loop-") as name:
        place = Directories(arguments, pathlib.Path(name))
        # Steps and learning rate do not end: how far a start comes is the machine's.
        model = {"train.global_batch": GLOBAL_BATCH, "optimizer.curve": "constant",
                 "optimizer.name": arguments.optimizer, "optimizer.root_every": 3}
        settings = {"train.steps": 10**6, "checkpoint.every_steps": 1,
                    "checkpoint.keep_last": 2, **model}
        run = pathlib.Path(name) / "killed"
        kills, starts = 0, 0
        while kills < arguments.kills:
            starts += 1
            before, loads_before = newest_step(run), len(place.lines("killed", "load"))
            ranks, layout = dice.choice(LAYOUTS)
            # A thread that writes beside training gets little of a busy machine.
            asynchronous = "true" if dice.random() < 0.3 else "false"
            launcher = place.begin(ranks, "killed", settings | layout | {"checkpoint.asynchronous": asynchronous})
            if strike(place, run, launcher, dice):
                kills += 1
            said = launcher.communicate(timeout=60)[0]
            loads = [line["step"] for line in place.lines("killed", "load")[loads_before:]]
            check(all(step == before for step in loads),
                  f"start {starts} has loaded {loads}, and {before} was the newest: {said}")
        steps = max(arguments.steps, newest_step(run) + 3)
        place.train(2, "killed", settings | {"train.steps": steps})
        place.train(2, "whole", model | {"train.steps": steps})
        said = place.trireme("checkpoint", "diff", place.folder / "whole", run, "--must-be-equal")
        check("are the same, bit by bit" in said, f"the final states: {said}")
        check_ledger(check, place, steps)
        print(f"{kills} kills in {starts} starts of {steps} steps")
        move_between_layouts(check, place, dice, settings, model)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
