#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`trireme track sync` of runs made by hand: each number arrives once, while the record grows,
after kills at any moment, and after a server was gone.

usage: sync_test.py TRIREME
"""
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import collector as otlp  # noqa: E402
import made_run  # noqa: E402
import readers  # noqa: E402

TRIREME = str(pathlib.Path(sys.argv[1]).resolve())


def sync(run, *targets, code=0):
    """What it printed; of a failure, what it complained of."""
    words = [TRIREME, "-q", "track", "sync", str(run)]
    for target in targets:
        words += ["--to", target]
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
        mistakes(folder)
    print("each number arrives once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
