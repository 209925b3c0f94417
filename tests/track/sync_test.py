#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`trireme track sync` of runs made by hand: each number arrives once, while the record grows,
after kills at any moment, and after a server was gone.

usage: sync_test.py TRIREME
"""
import collections
import datetime
import hashlib
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import collector as otlp  # noqa: E402
import made_run  # noqa: E402
import readers  # noqa: E402

TRIREME = str(pathlib.Path(sys.argv[1]).resolve())


def sync(run, *targets, code=0):
    """What it printed; of a failure, what it complained of. Options follow the targets."""
    words = [TRIREME, "-q", "track", "sync", str(run)]
    options = next((at for at, word in enumerate(targets) if word.startswith("--")), len(targets))
    for target in targets[:options]:
        words += ["--to", target]
    words += targets[options:]
    end = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False,
                         cwd=pathlib.Path(run).parent)
    assert end.returncode == code, f"{words} ended with {end.returncode}\n{end.stderr}"
    return end.stdout.strip() if code == 0 else end.stderr


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def losses_of(points):
    """{step: loss}; each step once."""
    found = [(step, value) for tag, step, value, _ in points if tag == "train/loss"]
    assert len(dict(found)) == len(found), "a step stands twice"
    return dict(found)


def expect_tensorboard(path, steps):
    points = readers.tensorboard(path, check_sums=steps < 200)
    wanted = {step: single(made_run.MadeRun.loss(step)) for step in range(1, steps + 1)}
    assert losses_of(points) == wanted
    evaluations = [step for tag, step, *_ in points if tag == "eval/loss"]
    assert evaluations == list(range(10, steps + 1, 10)), evaluations
    assert [step for tag, step, *_ in points if tag == "save/bytes"] == list(range(25, steps + 1, 25))
    return points


def expect_wandb(folder, steps):
    path, = pathlib.Path(folder).glob("run-*.wandb")
    rows, config, summary, end = readers.wandb(path)
    assert [row["_step"] for row in rows] == list(range(1, steps + 1)), rows[-1]
    for row in rows:
        step = row["_step"]
        assert row["train/loss"] == made_run.MadeRun.loss(step), row
        assert ("eval/loss" in row) == (step % 10 == 0) and ("save/bytes" in row) == (step % 25 == 0)
    assert config["optimizer.learning_rate"] == 0.0003 and config["run.name"] == "made by hand", config
    assert summary["train/step"] == steps, summary
    return end


def grows(folder):
    """A record that is sent again and again while it grows, through a restart, to its end."""
    run = made_run.MadeRun(folder / "runs/a", steps=120)
    targets = [f"tensorboard={folder}/tb", f"wandb={folder}/wb", f"prometheus={folder}/prom/a.prom"]
    run.steps(1, 40)
    sync(run.folder, *targets)
    run.steps(41, 60)
    sync(run.folder, *targets)
    sync(run.folder, *targets)
    run.start_again(51)
    run.steps(51, 70)
    sync(run.folder, *targets)
    run.steps(71, 120)
    run.finish(120)
    places = sync(run.folder, *targets).splitlines()
    expect_tensorboard(pathlib.Path(places[0]), 120)
    assert expect_wandb(places[1], 120) == 0, "the run has ended well"
    text = pathlib.Path(places[2]).read_text()
    for line in ('trireme_up{run="made by hand"} 0', 'trireme_step{run="made by hand"} 120',
                 'trireme_step_seconds{run="made by hand"} 0.2505', "# TYPE trireme_tokens_total counter"):
        assert line in text.splitlines(), text
    assert sync(run.folder, *targets).splitlines() == places, "it may be called again"
    expect_tensorboard(pathlib.Path(places[0]), 120)
    expect_wandb(places[1], 120)


def is_killed(folder):
    """Killed over and over; the files are then, byte for byte, those of one call without a kill."""
    run = made_run.MadeRun(folder / "runs/b", steps=8000)
    run.steps(1, 8000)
    run.finish(8000)
    dice, kills = random.Random(7), 0
    for turn in range(60):
        words = [TRIREME, "-q", "track", "sync", str(run.folder), "--to", f"tensorboard={folder}/kb",
                 "--to", f"wandb={folder}/kw"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=dice.uniform(0.0, 0.02 + 0.005 * turn))
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills > 3, "it ends too fast to be killed"
    places = sync(run.folder, f"tensorboard={folder}/kb", f"wandb={folder}/kw").splitlines()
    expect_tensorboard(pathlib.Path(places[0]), 8000)
    expect_wandb(places[1], 8000)
    for note in (run.folder / "track").iterdir():
        note.unlink()
    whole = sync(run.folder, f"tensorboard={folder}/wholeb", f"wandb={folder}/wholew").splitlines()
    assert pathlib.Path(whole[0]).read_bytes() == pathlib.Path(places[0]).read_bytes()
    file, = pathlib.Path(places[1]).glob("*.wandb")
    assert (pathlib.Path(whole[1]) / file.name).read_bytes() == file.read_bytes()
    print(f"killed {kills} times")



def server_is_gone(folder):
    """A collector that is out of order, comes back, and misses nothing."""
    run = made_run.MadeRun(folder / "runs/c", steps=100)
    run.steps(1, 60)
    with otlp.Collector() as collector:
        target = f"otlp={collector.url}"
        collector.refuses = 400
        said = sync(run.folder, target, code=6)
        assert "HTTP 400" in said and "out of order" in said, said
        collector.refuses = 503
        words = [TRIREME, "-q", "track", "sync", str(run.folder), "--to", target]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while collector.requests < 4:
            time.sleep(0.02)
        collector.refuses = 0
        assert process.wait(timeout=60) == 0, "it has tried again"
        run.steps(61, 100)
        run.finish(100)
        assert sync(run.folder, target) == f"{collector.url}/v1/metrics"
        losses = collector.points["trireme.train.loss"]
        assert list(losses.values()) == [run.loss(step) for step in range(1, 101)], losses
        assert collector.repeated == 0
        assert collector.points["trireme.speed.step"] and collector.resource["trireme.run"] == "made by hand"
        assert set(collector.points["trireme.speed.step"].values()) == {0.2505}, "seconds"


def time_ns(step):
    """Of a step's line of a run that is made by hand."""
    when = datetime.datetime.fromisoformat(made_run.time_text(step).replace("Z", "+00:00"))
    return round(when.timestamp() * 1000) * 1_000_000


def hexadecimal(text, digits):
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def expect_spans_of_record(collector, steps, first_of_job):
    """What the lines say, each once: names, times, ids, parents, resources; the steps from one on are
    of a start in job 4711."""
    spans = {key: span for key, span in collector.spans.items()
             if "trireme.rank" not in span["resource"]}
    counts = collections.Counter(span["name"] for span in spans.values())
    assert counts == {"train_step": steps, "load_batch": steps, "evaluate": steps // 10,
                      "save_checkpoint": steps // 25, "load_checkpoint": 1}, counts
    run = next(iter(spans.values()))["resource"]["service.instance.id"]
    durations = {"train_step": 250.5, "evaluate": 125, "save_checkpoint": 80.25, "load_checkpoint": 1500}
    for key, span in spans.items():
        step = span["attributes"]["trireme.step"]
        if span["name"] == "load_batch":
            root = spans[span["parent"]]
            assert (span["begin"], span["end"] - span["begin"]) == (root["begin"], 500_000), span
        else:
            assert span["end"] == time_ns(step), (span, time_ns(step))
            assert span["end"] - span["begin"] == durations[span["name"]] * 1e6, span
        if span["name"] == "load_checkpoint":
            assert span["parent"] is None and span["resource"]["run.id"] == "4711", span
            continue
        assert span["trace"] == hexadecimal(f"{run} step {step}", 32), span
        if span["name"] == "train_step":
            assert key == hexadecimal(f"{run} step {step} itself", 16) and span["parent"] is None
            assert span["attributes"] == {
                "trireme.step": step, "trireme.exposed_comm_seconds": 0.0205,
                "trireme.tensor_comm_seconds": 0.03025, "trireme.bubble_seconds": 0.00125,
                "trireme.data_seconds": 0.0005}, span
            assert span["resource"]["run.id"] == (run if step < first_of_job else "4711"), span
        assert span["resource"]["service.name"] == "trireme", span
    collector.check_trees()


def expect_spans_of_ranks(collector, ranks, step, origin):
    spans = collector.spans
    for rank in ranks:
        own = {span["name"]: (key, span) for key, span in spans.items()
               if span["resource"].get("trireme.rank") == rank}
        assert len(own) == 8, own.keys()
        parents = {"train_step": None, "forward_backward": "train_step",
                   "microbatch.forward": "forward_backward", "layer.forward": "microbatch.forward",
                   "p2p.send": "microbatch.forward", "microbatch.backward": "forward_backward",
                   "optimizer_step": "train_step", "evaluate": None}
        for name, parent in parents.items():
            span = own[name][1]
            above = spans[span["parent"]]
            if parent is None:
                assert above["name"] == "train_step" and "trireme.rank" not in above["resource"], above
                assert above["attributes"]["trireme.step"] == step, above
            else:
                assert span["parent"] == own[parent][0], (name, above)
        send = own["p2p.send"][1]
        assert (send["begin"], send["end"]) == (origin + 3_500_000, origin + 5_000_000), send
        assert send["attributes"] == {"trireme.step": step, "trireme.group": "pp", "trireme.bytes": 64,
                                      "trireme.sequence": 1, "trireme.peer": (rank + 1) % 4,
                                      "trireme.tag": 7}, send
        assert own["layer.forward"][1]["attributes"]["trireme.layer"] == 5
        assert send["resource"]["host.name"] == f"node{rank // 2}" and send["resource"]["trireme.pp"] == rank
        assert send["resource"]["run.id"] == "4711", send["resource"]


def spans_arrive_once(folder):
    """Killed behind each request, with the answer on its way: what is sent again is the same."""
    run = made_run.MadeRun(folder / "runs/e", steps=100)
    run.steps(1, 40)
    origin = time_ns(35) - 9_500_000
    with otlp.Collector() as collector:
        words = [TRIREME, "-q", "track", "sync", str(run.folder), "--to", f"otlp={collector.url}",
                 "--trace-ranks", "all"]
        kills = 0

        def send_with_kills():
            nonlocal kills
            for answered in range(100):
                collector.silent, collector.silent_behind = threading.Event(), collector.requests + answered
                process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
                while process.poll() is None and not collector.silent.wait(0.01):
                    pass
                if not collector.silent.is_set():
                    assert process.returncode == 0, process.returncode
                    break
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
            collector.silent = collector.silent_behind = None

        send_with_kills()
        run.start_again(31, job="4711")
        run.steps(31, 100)
        run.record(35, 4, origin, job="4711")
        run.finish(100)
        send_with_kills()
        assert kills > 5 and collector.repeated_spans > 0, (kills, collector.repeated_spans)
        # Steps that were sent before they were made again are not sent a second time.
        expect_spans_of_record(collector, 100, first_of_job=41)
        expect_spans_of_ranks(collector, range(4), 35, origin)
        sent, requests = len(collector.spans), collector.requests
        sync(run.folder, f"otlp={collector.url}", "--trace-ranks", "all")
        assert (len(collector.spans), collector.requests) == (sent, requests), "all of it was sent"
    for ranks, expected in (("single", {0}), ("first-of-node", {0, 2}), ("sampled", {0, 1, 2, 3})):
        with otlp.Collector() as collector:
            sync(run.folder, f"otlp={collector.url}", "--trace-ranks", ranks)
            expect_spans_of_record(collector, 100, first_of_job=31)
            expect_spans_of_ranks(collector, expected, 35, origin)
            found = {span["resource"].get("trireme.rank") for span in collector.spans.values()}
            assert found == expected | {None}, (ranks, found)
    with otlp.Collector() as collector:
        collector.takes_traces = False
        sync(run.folder, f"otlp={collector.url}")
        assert len(collector.points["trireme.train.loss"]) == 100 and not collector.spans
    print(f"{sent} spans arrived once; killed {kills} times")


def mistakes(folder):
    run = made_run.MadeRun(folder / "runs/d", steps=10)
    run.steps(1, 10)
    assert "is no run directory" in sync(folder / "runs", f"tensorboard={folder}/x", code=2)
    said = sync(run.folder, "tensorbord=x", code=2)
    assert "tensorboard=DIR" in said and "did you mean 'tensorboard'" in said, said
    assert "mlflow=http" in sync(run.folder, "mlflow=host:5000", code=2)
    assert "where to" in sync(run.folder, "wandb=", code=2)
    place = pathlib.Path(sync(run.folder, f"tensorboard={folder}/x"))
    place.write_bytes(place.read_bytes()[:-1])
    run.steps(11, 12)
    said = sync(run.folder, f"tensorboard={folder}/x", code=6)
    assert "RUN/track" in said, said


def main():
    with tempfile.TemporaryDirectory(prefix="trireme-track-") as text:
        folder = pathlib.Path(text)
        grows(folder)
        is_killed(folder)
        server_is_gone(folder)
        spans_arrive_once(folder)
        mistakes(folder)
    print("each number arrives once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
