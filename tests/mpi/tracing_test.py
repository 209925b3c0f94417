#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of real runs: what they say is what metrics.jsonl says, their events nest, messages have
arrows, a run that goes on is asked without a restart, and clocks of ranks may differ.

usage: tracing_test.py --trireme FILE --mpirun FILE [--hta]
  --hta  HolisticTraceAnalysis reads the traces (a virtual environment in .cache, made when missing)
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import venv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.dont_write_bytecode = True
from place import ROOT, Place  # noqa: E402

SKIPPED = 77
PACKAGES = ("HolisticTraceAnalysis",)


class Traces(Place):
    def __init__(self, options, folder):
        super().__init__(options.trireme, folder, options.mpirun, settings={
            "data.validation": "tokens.validation", "model.num_hidden_layers": 4, "numerics.threads": 1})
        self.make_tokens("--validation-fraction", 0.1)

    def steps(self, name):
        return {line["step"]: line for line in self.lines(name, "train")}

    def events(self, name, steps, rank):
        path = self.directory(name) / f"trace/steps-{steps}/rank-{rank:04}.json"
        return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


def check_nesting(events):
    """Events of one track lie in one another, or beside each other."""
    tracks = {}
    for event in events:
        begin = round(event["ts"] * 1000)
        tracks.setdefault((event["pid"], event["tid"]), []).append(
            (begin, -(begin + round(event["dur"] * 1000))))
    for spans in tracks.values():
        ends = []
        for begin, negative in sorted(spans):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or -negative <= ends[-1], "an event ends after the one around it"
            ends.append(-negative)


def of_kind(events, kind):
    return [event for event in events if event["args"].get("kind") == kind]


def check_against_metrics(place, name, first, last):
    """Spans and fields of metrics.jsonl are the same times."""
    events = place.events(name, f"{first}-{last}", 0)
    lines = place.steps(name)
    lines = [lines[step] for step in range(first, last + 1)]
    pairs = {"step": "step_ms", "data": "data_ms", "tensor-parallel": "tensor_comm_ms",
             "bubble": "bubble_ms", "gradient reduction": "exposed_comm_ms"}
    for kind, field in pairs.items():
        spans = sum(event["dur"] for event in of_kind(events, kind)) / 1e3
        told = sum(line[field] for line in lines)
        # Spans of two clock readings of their own: some 0.1 us each.
        near = 0.01 * told + 0.001 * len(of_kind(events, kind)) + 0.02
        assert abs(spans - told) <= near, f"{kind}: {spans} ms in the trace, {told} in {field}"
    assert told_of(place, name)["first_step"] == first


def told_of(place, name, *words):
    return json.loads(place.trireme("trace", f"runs/{name}", "--json", *words))


def planned_steps(place):
    """Four ranks, two stages of two tensor-parallel ones: every kind of span."""
    place.train(4, "planned", {"train.steps": 6, "train.profile": "4..5", "parallel.tensor": 2,
                               "parallel.pipeline": 2, "parallel.stage_layers": "2,2"})
    layers = {0: {0, 1}, 1: {0, 1}, 2: {2, 3}, 3: {2, 3}}
    for rank in range(4):
        events = place.events("planned", "4-5", rank)
        check_nesting(events)
        assert [event["name"] for event in of_kind(events, "step")] == ["ProfilerStep#4", "ProfilerStep#5"]
        for kind in ("layer forward", "layer backward input", "layer backward weight"):
            assert {event["args"]["number"] for event in of_kind(events, kind)} == layers[rank], kind
        batches = {event["args"]["micro_batch"] for event in of_kind(events, "forward")}
        assert batches == {event["args"]["micro_batch"] for event in of_kind(events, "backward")}
        operations = of_kind(events, "operation")
        sums = [one for one in operations if one["args"]["group"] == "tp"]
        assert sums and all(one["args"]["bytes"] > 0 and one["args"]["Group size"] == 2 for one in sums)
        # Nothing is left out: two layers a stage, and each collective of activations in its span;
        # a step's other one, of uncut gradients, is not of activations. A layer sums twice in forward,
        # and in backward computes gradients of weights beside two sums: each of these four has a span
        # at its start and its end.
        passes = 2 * len(batches)
        layer_passes = 2 * passes
        expected = {"step": 2, "data": 2, "forward backward": 2, "forward": passes, "backward": passes, "bubble": passes,
                    "layer forward": layer_passes, "layer backward input": 3 * layer_passes,
                    "layer backward weight": 2 * layer_passes, "norm": 2, "update": 2,
                    "tensor-parallel": len(sums) - 2 + 4 * layer_passes}
        counts = {kind: len(of_kind(events, kind)) for kind in expected}
        assert counts == expected, (counts, expected)
        peers = {one["args"]["peer"] for one in operations if "peer" in one["args"]}
        assert peers == {(rank + 2) % 4}, peers
    check_against_metrics(place, "planned", 4, 5)
    answer = told_of(place, "planned")
    for rank in answer["ranks"]:
        assert abs(sum(rank["seconds"].values()) - rank["wall_seconds"]) < 1e-9, rank
        assert rank["seconds"]["compute"] > 0 and 0 <= rank["overlap"] <= 1, rank
        assert rank["clock_error_seconds"] == 0, "ranks of one node have one clock"


def drawn(place):
    place.trireme("trace", "runs/planned", "--svg", "planned.svg", "--perfetto", "planned.json")
    assert "rank 3" in (place.folder / "planned.svg").read_text()
    events = json.loads((place.folder / "planned.json").read_text())["traceEvents"]
    check_nesting([event for event in events if event["ph"] == "X"])
    check_arrows(events)


def check_arrows(events, error=0):
    """Each send has its receive, which ends later; every arrow begins and ends in an event."""
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    sends = [event for event in events if event["ph"] == "X" and event["name"] == "ncclKernel send"]
    assert sends and len(begins) == len(ends) == len(sends), (len(begins), len(ends), len(sends))
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"] + 1 + error, f"{begin} arrives before it leaves: {end}"
        for one in (begin, end):
            assert any(event["ts"] <= one["ts"] <= event["ts"] + event["dur"]
                       for event in tracks[one["pid"], one["tid"]]), one


def asked_while_it_runs(place):
    process = place.start(2, "asked", {"train.steps": 100000, "checkpoint.every_minutes": 0,
                                       "train.eval_every": 0})
    try:
        deadline = time.monotonic() + 60
        while not place.lines("asked", "train"):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        said = place.trireme("profile", "runs/asked", "--steps", 3)
        assert "of 2 ranks" in said and "compute" in said, said
        again = place.trireme("profile", "runs/asked", "--steps", 1)
        assert again.startswith("steps ") and ".." not in again.split("of")[0], again
        traces = sorted((place.folder / "runs/asked/trace").iterdir())
        assert len(traces) == 2 and not (place.folder / "runs/asked/PROFILE").exists(), traces
        # The run has gone on, without another start.
        starts = [line for line in place.lines("asked", "event") if line["event"] == "start"]
        assert process.poll() is None and len(starts) == 1
    finally:
        (place.folder / "runs/asked/STOP").touch()
        process.wait(timeout=60)
    assert process.returncode == 0
    refused = place.trireme("profile", "runs/asked", code=2)
    assert "no process holds the run" in refused, refused


def stopped_in_between(place):
    """The steps that were recorded are there; those of a later start are recorded, too."""
    place.train(1, "short", {"train.steps": 4, "train.profile": "3..6"})
    assert told_of(place, "short")["last_step"] == 4
    place.train(1, "short", {"train.steps": 7, "train.profile": "3..6"})
    answer = told_of(place, "short", "--steps", "5..6")
    assert (answer["first_step"], answer["last_step"]) == (5, 6), answer


def clocks_that_differ(place):
    """A rank in a time namespace whose clock is 1000 s ahead, as on another node."""
    if subprocess.run(["unshare", "-T", "--fork", "--monotonic", "1000", "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("not run: time namespaces are not allowed here")
        return
    shifted = place.folder / "shifted"
    shifted.write_text('#!/bin/bash\nif [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then\n'
                       '  exec unshare -T --fork --monotonic 1000 "$0.program" "$@"\nfi\nexec "$0.program" "$@"\n')
    shifted.chmod(0o755)
    (place.folder / "shifted.program").symlink_to(place.program[0])
    words = place.command(2, "shifted", {"train.steps": 5, "train.profile": "3..4", "parallel.pipeline": 2,
                                         "run.order": "slurm", "comm.backend": "mpi"})
    words[words.index(str(place.program[0]))] = str(shifted)
    place.end_of(words, 0)
    answer = told_of(place, "shifted")
    error = answer["ranks"][1]["clock_error_seconds"]
    assert 0 < error < 0.1, answer
    place.trireme("trace", "runs/shifted", "--perfetto", "shifted.json")
    events = json.loads((place.folder / "shifted.json").read_text())["traceEvents"]
    check_arrows(events, error * 1e6)
    begins = [event["ts"] for event in events if event["ph"] == "X" and event["name"] == "ProfilerStep#3"]
    assert len(begins) == 2 and abs(begins[0] - begins[1]) < 1e6, begins


def mistakes(place):
    assert "has no trace" in place.trireme("trace", "runs", code=2)
    assert "there are 4..5" in place.trireme("trace", "runs/planned", "--steps", "9..10", code=2)
    assert "is no range of steps" in place.trireme("trace", "runs/planned", "--steps", "x", code=2)


def enter_environment():
    """Runs this script again where HolisticTraceAnalysis is."""
    folder = ROOT / ".cache/tracing-venv"
    if pathlib.Path(sys.prefix).resolve() == folder.resolve():
        return
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True)
        python = folder / "bin/python"
        end = subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=False)
        if end.returncode != 0:
            print(f"TRIREME_SKIP: PyPI does not give {', '.join(PACKAGES)}")
            sys.exit(SKIPPED)
        (folder / "complete").touch()
    python = str(folder / "bin/python")
    os.execv(python, [python, *sys.argv])


def near(ours, theirs, whole):
    """Within 2 % of the larger one, or of a thousandth of all."""
    assert abs(ours - theirs) <= 0.02 * max(ours, theirs) + 0.001 * whole, (ours, theirs, whole)


def read_by_hta(place):
    """HTA's breakdown and overlap equal ours: the trace of larger steps, with ZeRO and a pipeline."""
    from hta.trace_analysis import TraceAnalysis
    shapes = {"tp-pp": (4, {"parallel.tensor": 2, "parallel.pipeline": 2}),
              "dp": (2, {"parallel.zero_level": 1})}
    for name, (ranks, settings) in shapes.items():
        sizes = {"model.hidden_size": 128, "model.intermediate_size": 256, "train.sequence_length": 64}
        place.train(ranks, name, {"train.steps": 6, "train.profile": "4..6"} | sizes | settings)
        analysis = TraceAnalysis(trace_dir=str(place.folder / f"runs/{name}/trace/steps-4-6"),
                                 include_last_profiler_step=True)
        theirs = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
        overlaps = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")
        for rank in told_of(place, name)["ranks"]:
            row, number = theirs.loc[rank["rank"]], rank["rank"]
            wall = rank["wall_seconds"]
            near(rank["seconds"]["compute"], row["compute_time(us)"] / 1e6, wall)
            alone = rank["communication_seconds"] * (1 - rank["overlap"])
            near(alone, row["non_compute_time(us)"] / 1e6, wall)
            near(100 * rank["overlap"], overlaps.loc[number]["comp_comm_overlap_pctg"], 100)
            print(f"{name}, rank {number}: compute {rank['seconds']['compute'] * 1e3:.2f} ms, theirs "
                  f"{row['compute_time(us)'] / 1e3:.2f}; communication alone {alone * 1e3:.2f} ms, theirs "
                  f"{row['non_compute_time(us)'] / 1e3:.2f}; overlap {100 * rank['overlap']:.2f} %, theirs "
                  f"{overlaps.loc[number]['comp_comm_overlap_pctg']:.2f}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("trireme", "mpirun"):
        parser.add_argument(f"--{name}", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--hta", action="store_true")
    options = parser.parse_args()
    if options.hta:
        enter_environment()
    with tempfile.TemporaryDirectory(prefix="trireme-tracing-") as folder:
        place = Traces(options, pathlib.Path(folder))
        if options.hta:
            read_by_hta(place)
            return 0
        for part in (planned_steps, drawn, asked_while_it_runs, stopped_in_between, clocks_that_differ,
                     mistakes):
            part(place)
            print(f"ok  {part.__name__}", flush=True)
            if os.environ.get("TRIREME_KEEP"):
                shutil.copytree(place.folder, os.environ["TRIREME_KEEP"], dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
