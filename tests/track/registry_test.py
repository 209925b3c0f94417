#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`trireme checkpoint export --register mlflow=URL`: the folder's files are artifacts of the run, and a
version of a registered model, once, whenever the command is killed and called again.

usage: registry_test.py TRIREME
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import mlflow_server  # noqa: E402
from endpoint_test import tokens  # noqa: E402

TRIREME = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else ""
CONFIG = """
[model]
architecture = llama
vocab_size = 384
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 4
[train]
steps = 4
sequence_length = 32
micro_batch = 1
global_batch = 2
[data]
train = tokens
tokenizer = tokenizer.json
[checkpoint]
every_steps = 2
[run]
name = made here
"""


def trained_run(trireme, folder):
    tokens(trireme, folder)
    (folder / "run.conf").write_text(CONFIG)
    subprocess.run([trireme, "-q", "train", "run.conf", "--set", "run.directory=run"], check=True,
                   cwd=folder, stdout=subprocess.DEVNULL)
    return folder / "run"


def words_of(trireme, folder, what, target, *more):
    """The command, and no weights where it writes: a folder that has some is refused."""
    shutil.rmtree(folder / "exported", ignore_errors=True)
    return [trireme, "-q", "checkpoint", "export", what, "--to", "exported", "--register", target, *more]


def export(folder, what, target, *more, code=0):
    end = subprocess.run(words_of(TRIREME, folder, what, target, *more), cwd=folder, text=True,
                         capture_output=True, timeout=120, check=False)
    assert end.returncode == code, f"{end.returncode}\n{end.stderr}"
    return end.stdout if code == 0 else end.stderr


def is_registered(folder, server, run, label, model="made here"):
    """One version of the model has this source, and its files are those of the folder."""
    version, = [each for each in server.versions
                if each["source"].endswith(f"/models/{label}") and each["name"] == model]
    root = version["source"].removeprefix("mlflow-artifacts:/")
    for file in (folder / "exported").iterdir():
        assert server.artifacts[f"{root}/{file.name}"] == file.read_bytes(), file
    info = server.runs[version["run_id"]]
    assert version["source"] == f"{info['info']['artifact_uri']}/models/{label}", version
    ids = {each["key"]: each["value"] for each in version["tags"]}
    assert {"key": "trireme.run_id", "value": ids["trireme.run_id"]} in info["data"]["tags"], version
    assert ids["trireme.checkpoint"] == label and run.name == "run"
    return version


def is_killed(folder, run):
    """Behind each request, when it is done and not answered."""
    with mlflow_server.MlflowServer() as server:
        kills = 0
        while True:
            server.silent, server.silent_behind = threading.Event(), server.requests + kills
            process = subprocess.Popen(words_of(TRIREME, folder, "run", f"mlflow={server.url}"), cwd=folder,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and not server.silent.wait(0.01):
                pass
            if not server.silent.is_set():
                said, errors = process.communicate()
                assert process.returncode == 0, errors
                break
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            assert kills < 50
        assert kills > 8, kills
        assert len(server.runs) == len(server.models) == len(server.versions) == 1, server.versions
        is_registered(folder, server, run, "step-000000004-f32")
        # It was there: the process that made it was killed before it knew.
        assert "was registered before as made here version 1" in said, said
        assert server.runs["run0"]["params"]["model.hidden_size"] == "32"
        server.silent = None
        sent = set(server.artifacts)
        export(folder, "run", f"mlflow={server.url}")
        assert set(server.artifacts) == sent and len(server.versions) == 1
        return kills


def of_a_sent_run(folder, run):
    """Versions are linked to the run that `track sync` has sent; other steps and types are others."""
    with mlflow_server.MlflowServer() as server:
        target = f"mlflow={server.url}"
        subprocess.run([TRIREME, "-q", "track", "sync", "run", "--to", target], check=True, cwd=folder,
                       stdout=subprocess.DEVNULL)
        said = export(folder, "run", target)
        assert f"registered made here version 1: {server.url}/#/models/made%20here/versions/1" in said, said
        is_registered(folder, server, run, "step-000000004-f32")
        export(folder, "run", target, "--dtype", "bf16")
        is_registered(folder, server, run, "step-000000004-bf16")
        older, = run.glob("checkpoints/step-*2")
        export(folder, older, target)
        is_registered(folder, server, run, "step-000000002-f32")
        export(folder, "run", target, "--model-name", "another")
        is_registered(folder, server, run, "step-000000004-f32", model="another")
        export(folder, "run", target, "--model-name", "another")
        assert len(server.runs) == 1 and server.models == {"made here": 3, "another": 1}, server.models


def mistakes(folder, run):
    (folder / "exported/marker").touch()
    for words, code, part in ((("run", "tensorboard=x"), 2, "no registry of models"),
                              (("run", "mlflow=x"), 2, "is no URL"),
                              (("run", "mlflow=http://127.0.0.1:9", "--model-name", "a/b"), 2, "--model-name"),
                              ((run / "log", "mlflow=http://127.0.0.1:9"), 2, "is no run directory")):
        said = export(folder, *words, code=code)
        assert part in said, said
    with mlflow_server.MlflowServer(artifact_root="s3://bucket/1") as server:
        said = export(folder, "run", f"mlflow={server.url}", code=6)
        assert "s3://bucket" in said and "--artifacts-destination" in said, said
        assert not server.models and not server.artifacts
    end = subprocess.run([TRIREME, "checkpoint", "export", "run", "--to", "x", "--model-name", "a"],
                         cwd=folder, text=True, capture_output=True, check=False)
    assert end.returncode == 2 and "--register" in end.stderr, end.stderr
    assert not (folder / "x").exists()


def main():
    with tempfile.TemporaryDirectory(prefix="trireme-registry-") as text:
        folder = pathlib.Path(text)
        run = trained_run(TRIREME, folder)
        kills = is_killed(folder, run)
        of_a_sent_run(folder, run)
        mistakes(folder, run)
    print(f"a version is there once; killed {kills} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
