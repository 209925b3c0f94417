#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run that sends its record while it goes on (track.to), through an outage of the collector and a
SIGKILL of all of it, and through its next start: each step arrives once, with the numbers that
metrics.jsonl has.

usage: live_test.py --trireme FILE
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.dont_write_bytecode = True
import collector as otlp  # noqa: E402
import readers  # noqa: E402
from place import Place  # noqa: E402


class Live(Place):
    def __init__(self, options, folder):
        super().__init__(options.trireme, folder, settings={
            "numerics.threads": 1, "parallel.pipeline": 2, "train.profile": "3..4", "track.interval": "100ms",
            # Another number of steps changes no step that comes again.
            "optimizer.curve": "constant", "checkpoint.every_steps": 20}, quiet=False)
        self.make_tokens()

    def track(self, steps, target):
        return self.start(2, "live", {"train.steps": steps, "track.to": target}, stderr=subprocess.PIPE)

    def losses(self):
        """{step: loss} of the record, the last line of each step."""
        return {line["step"]: line["loss"] for line in self.lines("live", "train")}


def record_of(place, step):
    """Lines of a step, for the text of a failure."""
    lines = (place.folder / "runs/live/metrics.jsonl").read_text().splitlines()
    return [line for line in lines if f'"step":{step},' in line]


def wait_until(process, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not what():
        assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
        time.sleep(0.05)


def processes_of(session):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "pid (name) state parent group session ...": names may have blanks.
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def end_all(process):
    """SIGKILL of launcher and ranks, which have process groups of their own."""
    while found := processes_of(process.pid):
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    process.wait()


def run_with_trackers(place, collector):
    target = f"tensorboard=tb, otlp={collector.url}"

    def sent():
        return len(collector.points.get("trireme.train.loss", ()))

    process = place.track(10**7, target)
    try:
        wait_until(process, lambda: sent() > 40)
        # The collector is out of order: training goes on, and the other tracker gets its steps.
        collector.refuses = 500
        before, steps = sent(), max(place.losses())
        wait_until(process, lambda: max(place.losses()) > steps + 200)
        assert sent() == before
        collector.refuses = 0
        wait_until(process, lambda: sent() > before + 100)
        # Killed between a request and its answer: those of its steps that no checkpoint has are made
        # again, with other times.
        collector.silent = threading.Event()
        wait_until(process, collector.silent.is_set)
    finally:
        end_all(process)
        collector.silent = None
    steps = max(place.losses()) + 100
    process = place.track(steps, target)
    said = process.communicate(timeout=200)[1]
    assert process.returncode == 0, said
    return steps


def expect_spans(collector, place, steps):
    """Those of the record, and of both stages in the steps that were recorded."""
    collector.check_trees()
    roots = [span for span in collector.spans.values()
             if span["name"] == "train_step" and span["parent"] is None]
    assert sorted(span["attributes"]["trireme.step"] for span in roots) == list(range(1, steps + 1))
    loads = [span for span in collector.spans.values() if span["name"] == "load_checkpoint"]
    assert len(loads) == 1, loads
    roots = {span["attributes"]["trireme.step"]: span for span in roots}
    for rank in (0, 1):
        spans = [span for span in collector.spans.values()
                 if span["resource"].get("trireme.rank") == rank]
        counts = collections.Counter(span["name"] for span in spans)
        for name in ("train_step", "load_batch", "forward_backward", "optimizer_step", "grad_norm"):
            assert counts[name] == 2, (rank, counts)
        batches = counts["microbatch.forward"]
        assert batches > 0 and counts["microbatch.backward"] == batches, counts
        # Ranks' times are gathered over the world.
        messages = collections.Counter(
            span["name"] for span in spans if span["attributes"].get("trireme.group") != "world")
        assert messages["p2p.send"] == messages["p2p.recv"] == batches, (messages, counts)
        # The recording's clock and that of the lines are one, but for a line's milliseconds.
        for span in spans:
            if span["name"] == "train_step" and rank == 0:
                root = roots[span["attributes"]["trireme.step"]]
                assert abs(span["end"] - root["end"]) < 50e6, (span, root)
        assert {span["resource"]["host.name"] for span in spans} == {socket.gethostname()}
    events = json.loads((place.folder / "runs/live/trace/steps-3-4/rank-0000.json").read_text())
    own = [event for event in events["traceEvents"] if "kind" in event.get("args", {})]
    of_first = [span for span in collector.spans.values() if span["resource"].get("trireme.rank") == 0]
    assert len(own) == len(of_first), (len(own), len(of_first))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True, type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trireme-live-") as text, otlp.Collector() as collector:
        place = Live(options, pathlib.Path(text))
        wrong = place.track(5, "tensorbord=x")
        said = wrong.communicate(timeout=60)[1]
        assert wrong.returncode == 2 and said.count("did you mean 'tensorboard'") == 1, said
        steps = run_with_trackers(place, collector)
        file, = (place.folder / "tb").glob("*/events.*")
        points = [(step, value) for tag, step, value, _ in readers.tensorboard(file, check_sums=False)
                  if tag == "train/loss"]
        losses = place.losses()
        wrong = [(at, step) for at, (step, _) in enumerate(points, 1) if at != step]
        assert not wrong and len(points) == steps, (wrong[:5], len(points), steps)
        others = [(step, value, losses[step]) for step, value in points
                  if value != struct.unpack("<f", struct.pack("<f", losses[step]))[0]]
        assert not others, (others[:5], len(others), record_of(place, others[0][0]))
        numbers = collector.points["trireme.train.step"]
        times = collections.Counter(numbers.values())
        wrong = [(step, times[step]) for step in range(1, steps + 1) if times[step] != 1]
        assert not wrong and len(times) == steps, ("steps and their points", wrong[:5], len(wrong))
        assert collector.repeated > 0, "what was under way at the kill is sent again"
        expect_spans(collector, place, steps)
        print(f"{steps} steps arrived once; {collector.repeated} points were sent twice, alike")
    return 0


if __name__ == "__main__":
    sys.exit(main())
