# SPDX-License-Identifier: Apache-2.0
"""`trireme train` on four ranks that are told to stop at the worst moments: while they start, in the
middle of a save, in the middle of an evaluation. Each start must save what it has, end with the code
that asks for another one, and all starts together must have the numbers of a run without any stop.

usage: stop_test.py --mpirun SCRIPT --trireme FILE --config FILE
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from fault_test import Checks
from train_fault_test import write_tokens

RANKS = 4
STEPS = 14
REQUEUE = 75
SETTINGS = {"train.sequence_length": 64, "train.steps": STEPS, "parallel.tensor": 2,
            "parallel.pipeline": 2, "train.eval_every": 2, "train.eval_batches": 40,
            "checkpoint.every_steps": 3, "comm.timeout": "20s"}


class Run:
    def __init__(self, arguments, folder, name):
        self.directory = folder / name
        settings = dict(SETTINGS) | {"run.directory": self.directory, "data.train": folder / "tokens",
                                     "data.validation": folder / "tokens"}
        self.trireme = arguments.trireme
        self.command = [arguments.mpirun, str(RANKS), arguments.trireme, "train", arguments.config]
        for key, value in settings.items():
            self.command += ["--set", f"{key}={value}"]
        self.said = ""

    def start(self):
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def finish(self, launcher):
        try:
            self.said, _ = launcher.communicate(timeout=60)
        finally:
            launcher.kill()
        return launcher.returncode

    def lines(self, kind):
        file = self.directory / "metrics.jsonl"
        text = file.read_text() if file.exists() else ""
        # The last line may be half written.
        whole = [json.loads(line) for line in text.split("\n")[:-1]]
        return [line for line in whole if line["kind"] == kind]

    def numbers(self):
        return [(line["step"], line["loss"], line["grad_norm"]) for line in self.lines("train")]

    def evaluations(self):
        return [(line["step"], line["loss"], line["tokens"]) for line in self.lines("eval")]

    def processes(self):
        """The ranks, in any order."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if (entry.name.isdigit() and os.readlink(entry / "exe") == self.trireme
                        and str(self.directory) in (entry / "cmdline").read_text(errors="replace")):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def saves_under_way(self):
        return list((self.directory / "checkpoints").glob("step-*.tmp-*"))


def waits_for_signal(process, number=signal.SIGUSR1):
    """Whether the signal would be read, and not kill."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    mask = next(int(line.split()[1], 16) for line in status.splitlines()
                if line.startswith("SigBlk"))
    return bool(mask >> (number - 1) & 1)


def starting(run, before):
    """All ranks are there and have read no configuration of their peers yet, mostly."""
    processes = run.processes()
    return len(processes) == RANKS and all(waits_for_signal(process) for process in processes)


def saving(run, before):
    return bool(run.saves_under_way())


def evaluating(run, before):
    """A step that is evaluated is done, and its evaluation is not."""
    done = [line["step"] for line in run.lines("train")]
    evaluated = [line["step"] for line in run.lines("eval")]
    return (len(done) > before and done[-1] % SETTINGS["train.eval_every"] == 0
            and done[-1] not in evaluated)


def stop_at(run, moment, number, victims):
    """Starts the run, and signals that many of its ranks at that moment. Its exit code."""
    before = len(run.lines("train"))
    launcher = run.start()
    until = time.time() + 30
    while launcher.poll() is None and time.time() < until:
        if moment(run, before):
            for process in run.processes()[:victims]:
                os.kill(process, number)
            break
    return run.finish(launcher)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="trireme-stop-") as name:
        folder = pathlib.Path(name)
        write_tokens(folder / "tokens")
        whole = Run(arguments, folder, "whole")
        code = whole.finish(whole.start())
        check(code == 0, f"the run without a stop ended with {code}: {whole.said}")

        run = Run(arguments, folder, "stopped")
        # One rank that hears it is enough: all of them stop at the same step.
        for moment, number, victims in [(starting, signal.SIGUSR1, RANKS),
                                        (saving, signal.SIGUSR1, RANKS),
                                        (evaluating, signal.SIGTERM, RANKS),
                                        (starting, signal.SIGTERM, 1),
                                        (saving, signal.SIGTERM, 1),
                                        (evaluating, signal.SIGUSR1, 1)]:
            code = stop_at(run, moment, number, victims)
            done = len(run.lines("train"))
            print(f"{moment.__name__}: {victims} rank(s) got {number.name}; {done} steps are done")
            check(code == REQUEUE, f"a stop while {moment.__name__} ended with {code}: {run.said}")
            check(not run.saves_under_way(), f"half a save is left: {run.saves_under_way()}")
            newest = max((int(step.name.split("-")[1])
                          for step in (run.directory / "checkpoints").glob("step-*")), default=0)
            check(newest == done, f"{done} steps are done, and {newest} are saved: {run.said}")
        code = run.finish(run.start())
        check(code == 0, f"the last start ended with {code}: {run.said}")
        check(run.numbers() == whole.numbers(),
              f"other numbers: {run.numbers()} instead of {whole.numbers()}")
        # A stop interrupts an evaluation; the next start makes up for it.
        check(run.evaluations() == whole.evaluations(),
              f"other evaluations: {run.evaluations()} instead of {whole.evaluations()}")
        check(len(whole.evaluations()) == STEPS // 2, f"evaluations: {whole.evaluations()}")
        check(len(whole.numbers()) == STEPS, f"{len(whole.numbers())} steps of {STEPS}")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
