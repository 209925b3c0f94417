# SPDX-License-Identifier: Apache-2.0
"""A run whose checkpoints are objects (checkpoint.directory = s3://...): killed and continued with
other ranks it ends as an undisturbed one; what is unfinished, old, or another run's is treated as in
a folder; and what is damaged or refused is named.

usage: train_test.py --mpirun SCRIPT --trireme FILE --config FILE   (in swift_server.py)
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
from fault_test import Checks  # noqa: E402
from run_directory_test import USAGE, Directories  # noqa: E402
from s3_client import Bucket  # noqa: E402

CHECKPOINT = 6
STEPS = 30


def settings(name, more=None):
    return {"train.steps": STEPS, "checkpoint.every_steps": 3, "checkpoint.keep_last": 2,
            "checkpoint.directory": f"s3://steps/{name}"} | (more or {})


def names(bucket, prefix):
    return sorted(bucket.list(prefix))


def steps_in(bucket, prefix):
    """Committed ones: what a killed save has left stays for an hour."""
    return sorted(name.split("/")[1] for name in names(bucket, prefix)
                  if "/step-" in name and name.endswith("/manifest.json"))


def check_training(check, place, bucket):
    """Killed while it saves, continued on four ranks instead of two, equal to a run in a folder."""
    place.train(2, "whole", {"train.steps": STEPS})
    launcher = place.begin(2, "run", settings("a", {"train.steps": 10**6}))
    until = time.time() + 120
    while len(place.lines("run", "save")) < 4 and launcher.poll() is None and time.time() < until:
        time.sleep(0.01)
    for process in place.processes("run"):
        os.kill(process, signal.SIGKILL)
    said = launcher.communicate(timeout=60)[0]
    saved = [line["step"] for line in place.lines("run", "save")]
    check(len(saved) >= 4, f"four saves before the kill: {said}")
    said = place.train(4, "run", settings("a", {"train.steps": saved[-1] + 6}) | {"parallel.tensor": 2})
    check(f"goes on after step {saved[-1]}" in said, said)
    said = place.trireme("checkpoint", "list", place.folder / "run", "--json")
    listed = [json.loads(line) for line in said.splitlines()]
    check([line["step"] for line in listed] == [saved[-1] + 6, saved[-1] + 3, saved[-1]],
          f"the newest two steps are kept, and the one that was loaded: {said}")
    check(all(line["committed"] for line in listed), said)
    check(len(steps_in(bucket, "a/")) == 3, f"no other step is in the store: {names(bucket, 'a/')}")
    said = place.trireme("checkpoint", "verify", place.folder / "run")
    check("good" in said or "verified" in said, said)
    return saved[-1] + 6


def check_equal(check, place):
    """The same numbers as from a folder, by way of another layout."""
    place.train(2, "other", settings("b", {"train.steps": 10, "checkpoint.every_steps": 5}))
    place.train(1, "other", settings("b", {"checkpoint.every_steps": 5}))
    place.train(2, "folder", settings("b", {"train.steps": 10, "checkpoint.every_steps": 5,
                                          "checkpoint.directory": ""}))
    place.train(1, "folder", settings("b", {"checkpoint.every_steps": 5, "checkpoint.directory": ""}))
    said = place.trireme("checkpoint", "diff", place.folder / "folder", place.folder / "other",
                         "--must-be-equal")
    check("are the same, bit by bit" in said, said)
    # A copy of the objects is a step like any other.
    copy = place.folder / "copy"
    copy.mkdir()
    bucket = Bucket("steps")
    newest = f"b/step-{STEPS:09}/"
    for name in names(bucket, newest):
        file = copy / name.removeprefix(newest)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(bucket.get(name))
    said = place.trireme("checkpoint", "diff", copy, f"s3://steps/{newest}", "--must-be-equal")
    check("are the same, bit by bit" in said, said)
    said = place.trireme("checkpoint", "verify", "--deep", copy)
    check("good" in said or "verified" in said, said)


def check_commands(check, place, bucket, step):
    run = place.folder / "run"
    place.trireme("checkpoint", "tag", run, "best")
    check("a/tags/best" in names(bucket, "a/"), "the tag is an object")
    said = place.trireme("checkpoint", "tag", f"s3://steps/a/step-{step - 3:09}", "best",
                         code=CHECKPOINT)
    check(f"is taken by step {step}" in said, said)
    place.trireme("checkpoint", "tag", run, "best", "--remove")
    said = place.trireme("checkpoint", "prune", run, "--keep-last", "1")
    check(f"step-{step - 3:09}" in said, said)
    check(steps_in(bucket, "a/") == [f"step-{step:09}"], names(bucket, "a/"))
    said = place.trireme("checkpoint", "verify", "s3://steps/a", "--deep", code=CHECKPOINT)
    check("HDF5 reads files, not objects" in said, said)
    said = place.trireme("checkpoint", "list", "s3://steps/nothing", code=CHECKPOINT)
    check("'s3://steps/nothing' is no folder" in said, said)
    said = place.trireme("checkpoint", "list", "s3://other/a", code=CHECKPOINT)
    check("NoSuchBucket" in said, said)


def check_owners(check, place):
    said = place.train(2, "second", settings("a"), code=USAGE)
    check("has the checkpoints of another run" in said and str(place.folder / "run") in said, said)
    check(said.count("another run") == 1, f"said once: {said}")
    said = place.train(2, "misspelt", settings("a", {"checkpoint.directory": "S3://steps/a"}), code=USAGE)
    check("which is no URL that is known here" in said, said)
    said = place.train(2, "run", settings("elsewhere"), code=USAGE)
    check("but this run's checkpoints are in 's3://steps/a'" in said, said)


def check_damage(check, place, bucket):
    """A damaged newest step is named and not used; one without a manifest stays while it is young."""
    place.train(2, "bad", settings("c", {"train.steps": 9}))
    shard = next(name for name in names(bucket, "c/step-000000009/") if "shard-00001" in name)
    data = bytearray(bucket.get(shard))
    data[(1 << 20) + 4096] ^= 1  # in the values, which begin at the second MiB
    bucket.put(shard, bytes(data))
    bucket.put("c/step-000000012/0abc/shard-00000.h5", b"left by a save that was killed")
    said = place.train(2, "bad", settings("c", {"train.steps": 10}))
    check("step-000000009 is not used" in said and "shard-00001.h5" in said, said)
    check("goes on after step 6" in said, said)
    check("removed" not in said, said)
    check(any("step-000000012" in name for name in names(bucket, "c/")), names(bucket, "c/"))


def check_refusals(check, place):
    for name, value, text in [("AWS_SECRET_ACCESS_KEY", "wrong", "check the credentials"),
                              ("AWS_SECRET_ACCESS_KEY", None, "AWS_SECRET_ACCESS_KEY is not set"),
                              ("AWS_ENDPOINT_URL_S3", "http//x", "write it like that")]:
        before = os.environ[name]
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
        result = subprocess.run(place.command(2, "refused", settings("d")), text=True, timeout=90,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        os.environ[name] = before
        check(result.returncode != 0 and result.stdout.count(text) == 1, result.stdout)
        check(before not in result.stdout or name != "AWS_SECRET_ACCESS_KEY", "a secret is shown")
        shutil.rmtree(place.folder / "refused", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    check = Checks()
    bucket = Bucket("steps")
    with tempfile.TemporaryDirectory(prefix="trireme-store-") as name:
        place = Directories(arguments, pathlib.Path(name))
        step = check_training(check, place, bucket)
        check_equal(check, place)
        check_commands(check, place, bucket, step)
        check_owners(check, place)
        check_damage(check, place, bucket)
        check_refusals(check, place)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
