# SPDX-License-Identifier: Apache-2.0
"""What a start does to a run directory that is not its own: one that another start holds, one that
is finished, one that killed saves and damaged steps have been left in.

usage: run_directory_test.py --mpirun SCRIPT --trireme FILE --config FILE
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fault_test import Checks  # noqa: E402
from place import Place  # noqa: E402
from train_fault_test import write_tokens  # noqa: E402

USAGE, LAUNCH = 2, 3
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Directories(Place):
    """Runs that lie in the folder itself, under its whole name."""

    def __init__(self, arguments, folder):
        write_tokens(folder / "tokens")
        # Runs are named by their folders where their configuration has no name.
        config = folder / "unnamed.conf"
        text = pathlib.Path(arguments.config).read_text()
        config.write_text("\n".join(line for line in text.splitlines() if not line.startswith("name = ")))
        super().__init__(arguments.trireme, folder, arguments.mpirun, config, runs=folder, quiet=False, settings={
            "data.train": folder / "tokens", "train.sequence_length": 64, "comm.timeout": "60s"})

    def begin(self, ranks, run, settings):
        return self.start(ranks, run, settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def numbers(self, run, restart):
        return [(line["step"], line["loss"], line["grad_norm"])
                for line in self.lines(run, "train") if line["restart"] == restart]

    def processes(self, run):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if (entry.name.isdigit() and os.readlink(entry / "exe") == self.program[0]
                        and str(self.directory(run)) in (entry / "cmdline").read_text(errors="replace")):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def check_lock(place, check):
    """Of two starts in one run the second ends, on all ranks; a killed one is followed."""
    first = place.begin(2, "held", {"train.steps": 10**8})
    try:
        until = time.time() + 60
        while len(place.lines("held", "train")) < 3 and time.time() < until:
            time.sleep(0.05)
        holder = json.loads((place.folder / "held" / "lock").read_text())
        check(holder["process"] in place.processes("held"), f"the lock names nobody: {holder}")
        said = place.train(2, "held", {"train.steps": 10**8}, code=LAUNCH)
        check(f"process {holder['process']} on {holder['host']} since" in said,
              f"the holder is not named: {said}")
        said = place.trireme("checkpoint", "prune", place.folder / "held", "--keep-last", "1",
                             code=LAUNCH) if (place.folder / "held/checkpoints").exists() else ""
        check(not (place.folder / "held" / "failure.json").exists(), "a refused start left its words")
        check({line["restart"] for line in place.lines("held", "train")} == {0},
              "the second start has trained")
        check(first.poll() is None, "the first start did not survive the second")
    finally:
        for process in place.processes("held"):
            os.kill(process, signal.SIGKILL)
        first.communicate(timeout=30)
    said = place.train(2, "held", {"train.steps": 4})
    check(len(place.numbers("held", 1)) == 4, f"the killed start was not followed: {said}")


def check_lost_lock(place, check):
    """A start whose lock somebody takes away ends, and saves nothing any more."""
    launcher = place.begin(2, "lost", {"train.steps": 10**8})
    until = time.time() + 60
    while len(place.lines("lost", "train")) < 3 and time.time() < until:
        time.sleep(0.05)
    (place.folder / "lost" / "lock").unlink()
    try:
        said, _ = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    check(launcher.returncode == LAUNCH, f"a lost lock ends with {launcher.returncode}: {said}")
    check("was removed or taken over by another start" in said, f"why it ended: {said}")
    check(not place.lines("lost", "save"), "it has saved into a run that is not its own")


def check_held_up(place, check):
    """A rank that fails alone as the run is loaded, while storage holds up its thread: pipes that
    nobody writes stand for files that do not answer."""
    run = place.folder / "held-up"
    metrics, lock = run / "metrics.jsonl", run / "lock"
    run.mkdir()
    os.mkfifo(metrics)
    launcher = place.begin(2, "held-up", {"train.steps": 4})
    try:
        # Ends when the first rank reads it.
        writer = os.open(metrics, os.O_WRONLY)
        begin = time.time()
        lock.unlink()
        os.mkfifo(lock)
        metrics.unlink()
        metrics.mkdir()
        os.close(writer)
        said, _ = launcher.communicate(timeout=60)
        seconds = time.time() - begin
    finally:
        for process in place.processes("held-up"):
            os.kill(process, signal.SIGKILL)
        launcher.kill()
    check(seconds < 20, f"peers were told after {seconds:.1f} s: {said}")
    check("metrics.jsonl" in said and "first failing rank 0" in said, f"not told: {said}")


def check_refusals(place, check):
    """What a start that was refused does to a finished run: nothing."""
    run = place.folder / "finished"
    said = place.train(2, "finished", {"train.steps": 4})
    for words in ["llama, ", "768 tokens a step (12 sequences of 64)", "begins anew, up to step 4",
                  "done: 4 steps (4 in this start", "trireme generate --weights"]:
        check(words in said, f"a run does not say '{words}': {said}")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in run.rglob("*"))
    place.train(2, "finished", {"train.steps": 8}, "--fresh", code=USAGE)
    place.train(2, "finished", {"train.steps": 8, "data.train": place.folder / "no-such"}, code=6)
    after = sorted((str(path), path.stat().st_mtime_ns) for path in run.rglob("*"))
    check(before == after, f"refused starts have changed {set(before) ^ set(after)}")
    postmortem = json.loads(place.trireme("why", run, "--no-slurm", "--json"))
    check(postmortem["ending"] == "finished", f"the postmortem's ending: {postmortem}")
    place.trireme("train", code=USAGE)
    check(not (place.folder / "runs").exists(), "a start without a configuration made a run")


def check_leftovers(place, check):
    """What killed saves have left is removed at the next start."""
    left = place.folder / "finished/checkpoints/step-000000002.tmp-0123"
    left.mkdir()
    (left / "shard-00000.h5").write_bytes(bytes(1000))
    said = place.train(1, "finished", {"train.steps": 5})
    check("goes on after step 4, up to step 5" in said, f"no word of where it goes on: {said}")
    check("was to end at step 4, and its learning rate has come to its minimum" in said,
          f"no word of the learning rate: {said}")
    said = place.train(1, "finished", {"train.steps": 5})
    check("nothing to do: all 5 steps were done before" in said, f"no word of the end: {said}")
    check("its minimum" not in said, f"a word too many: {said}")
    check(not left.exists(), "half a save of a killed start is still there")
    manifest = json.loads(place.trireme("checkpoint", "inspect", place.folder / "finished", "--json"))
    check(re.fullmatch(r"trireme \d+\.\d+\.\d+ \(.+\)", manifest["tool_version"]) is not None,
          f"tool_version: {manifest['tool_version']}")


def check_damage_after_import(place, check):
    """A damaged step fills moments in part; the imported one before it has none."""
    place.trireme("checkpoint", "export", place.folder / "finished", "--to", place.folder / "hf",
                  "--without-tokenizer")
    place.trireme("checkpoint", "import", place.folder / "hf", "--to", place.folder / "tuned")
    settings = {"train.steps": 3, "checkpoint.keep_last": 0}
    said = place.train(2, "tuned", settings)
    check("begins with imported weights" in said and "continues after" not in said,
          f"an import reads like a resume: {said}")
    whole = place.numbers("tuned", 0)
    check(len(whole) == 3, f"{len(whole)} steps of 3")
    # The first shard is good: what it holds is in memory before the second turns out to be bad.
    shard = place.folder / "tuned/checkpoints/step-000000003/shard-00001.h5"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    said = place.train(2, "tuned", settings)
    check("step-000000003 is not used" in said, f"the damage was not seen: {said}")
    check(place.numbers("tuned", 1) == whole,
          f"after a damaged step: {place.numbers('tuned', 1)} instead of {whole}")


def check_metrics(place, check):
    for kind in ["train", "save", "event", "load"]:
        lines = place.lines("finished", kind)
        check(bool(lines), f"no line of kind {kind}")
        for line in lines:
            check(TIME.fullmatch(line.get("time", "")) is not None, f"no time: {line}")
            check(line["run"] == "finished", f"another run's name: {line}")
    for line in place.lines("finished", "save"):
        check(line["bytes"] > 0 and line["write_ms"] > 0 and line["stall_ms"] >= line["write_ms"]
              and line["asynchronous"] is False, f"a save: {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="trireme-run-directory-") as name:
        place = Directories(arguments, pathlib.Path(name))
        for part in [check_lock, check_lost_lock, check_held_up, check_refusals, check_leftovers,
                     check_damage_after_import, check_metrics]:
            begin = time.time()
            part(place, check)
            print(f"{part.__name__}: {time.time() - begin:.1f} s")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
