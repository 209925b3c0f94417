#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""track.prometheus_port: a real Prometheus finds the nodes of a run that goes on by its list of
targets, scrapes them with the run's token, and has data for every query of the dashboards; without
the token nobody gets a number; a port that is taken is not asked for twice; when the run has ended
the list is gone.

usage: endpoint_test.py --trireme FILE --root FOLDER
"""
import argparse
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
import real_prometheus  # noqa: E402

CONFIG = """
[model]
architecture = llama
vocab_size = 64
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 4
[train]
steps = 1000000
sequence_length = 32
micro_batch = 1
global_batch = 4
eval_every = 20
eval_batches = 1
[parallel]
tensor = 2
pipeline = 2
[data]
train = TOKENS
validation = TOKENS
[checkpoint]
every_steps = 20
[track]
prometheus_interface = lo
"""


def get(target, token=None, path="/metrics"):
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    request = urllib.request.Request(f"http://{target}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_for(condition, what, seconds=90):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return result


def tokens(trireme, folder):
    """Token files of a small vocabulary."""
    (folder / "text.txt").write_text("abcdefgh " * 4000)
    subprocess.run([trireme, "-q", "tokenizer", "train", "--input", folder / "text.txt", "--vocab-size",
                    "300", "--out", folder / "tokenizer.json"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([trireme, "-q", "data", "prepare", "--input", folder / "text.txt", "--tokenizer",
                    folder / "tokenizer.json", "--out", folder / "tokens"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "tokens"


def watched(trireme, run):
    """{node: (ranks, slowest, its time)} that `trireme watch` shows."""
    text = subprocess.run([trireme, "watch", run, "--once"], check=True, text=True,
                          capture_output=True).stdout
    return re.findall(r"(\S+)  ranks (\S+)  stages (\S+)  slowest (\d+): (\d\S* \S+)", text), text


def check_watch(trireme, run, target, token):
    """The slowest rank of a node is asked of it, else it is the one that the run has recorded."""
    assert re.search(r"^trireme_rank_computing_seconds\{.*rank=\"3\"\} \d", get(target, token)[1], re.M)
    recorded = wait_for(lambda: (run / "ranks.json").exists() and json.loads((run / "ranks.json").read_text()),
                        "no times of ranks")
    assert recorded["node"] == [0] * 4 and min(recorded["computing_ms"]) > 0, recorded
    slowest = max(range(4), key=lambda rank: recorded["computing_ms"][rank])
    secret = run / "track/prometheus.token"
    hidden = secret.rename(run / "track/hidden")
    (node, ranks, stages, rank, _), = watched(trireme, run)[0]
    assert (ranks, stages, int(rank)) == ("0-3", "0-1", slowest), (node, ranks, rank, recorded)
    hidden.rename(secret)
    # With the token the times are those of the last step: others each time.
    seen = set()
    wait_for(lambda: seen.add(watched(trireme, run)[0][0][4]) or len(seen) > 1,
             "times of one step alone")


def check(trireme, folder, run, port):
    listed = wait_for(lambda: (run / "track/prometheus.targets.json").exists()
                      and (run / "track/prometheus.targets.json").read_text(), "no targets")
    [entry] = json.loads(listed)
    [target] = entry["targets"]
    assert target.startswith("127.0.0.1:") and not target.endswith(f":{port}"), target
    secret = run / "track/prometheus.token"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    token = secret.read_text()
    assert len(token) == 32
    for wrong in (None, "", token[:-1], "0" * 32):
        code, body = get(target, wrong)
        assert code == 401 and "trireme_" not in body, (wrong, code, body)
    assert get(target, token, "/")[0] == 404
    text = wait_for(lambda: (got := get(target, token)[1]) and "trireme_loss{" in got and got, "no loss")
    lint = subprocess.run([real_prometheus.program("promtool"), "check", "metrics"], input=text, text=True,
                          capture_output=True, check=False)
    assert lint.returncode == 0 and not lint.stderr, lint.stderr
    for rank in range(4):
        assert f'rank="{rank}"' in text, text
    check_watch(trireme, run, target, token)
    # Whoever holds a connection open keeps nobody away for long.
    host, _, number = target.partition(":")
    with socket.create_connection((host, int(number))) as idle:
        idle.send(b"GET /metrics HTTP/1.1\r\nX: ")
        assert get(target, token)[0] == 200
    server = real_prometheus.Prometheus(folder, [
        f"file_sd_configs: [{{files: ['{run}/track/prometheus.targets.json'], refresh_interval: 1s}}]",
        f"authorization: {{credentials_file: '{secret}'}}"])
    try:
        # Metrics of the save and the evaluation come with step 20, rates with the second scrape.
        server.wait_for("trireme_checkpoint_bytes and trireme_held_out_loss")
        assert {each["metric"]["rank"] for each in server.query("trireme_rank_step > 0")} == set("0123")
        asked = 0
        for where, expression in real_prometheus.queries("run.json", "cluster.json", "network.json"):
            # A container may have no adapter but loopback.
            expression = expression.replace(', device!="lo"', "")
            wait_for(lambda: server.query(expression), f"{where}: no data for {expression}", 30)
            asked += 1
        assert asked > 30, asked
        print(f"{asked} queries of the dashboards have data")
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args()
    real_prometheus.program("prometheus")
    with tempfile.TemporaryDirectory(prefix="trireme-endpoint-") as text, socket.socket() as taken:
        folder = pathlib.Path(text)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = folder / "run.conf"
        config.write_text(CONFIG.replace("TOKENS", str(tokens(options.trireme, folder)))
                          .replace("vocab_size = 64", "vocab_size = 384"))
        run = folder / "run"
        process = subprocess.Popen(
            [options.trireme, "train", config, "--ranks", "4", "--set", f"run.directory={run}",
             "--set", f"track.prometheus_port={port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            check(options.trireme, folder, run, port)
            (run / "STOP").touch()
            _, errors = process.communicate(timeout=90)
            assert process.returncode == 0, errors
            assert not (run / "track/prometheus.targets.json").exists()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                print(process.communicate()[1], file=sys.stderr)
        wrong = subprocess.run(
            [options.trireme, "train", config, "--set", f"run.directory={folder}/other", "--set",
             "parallel.tensor=1", "--set", "parallel.pipeline=1", "--set", "train.steps=2", "--set",
             "track.prometheus_port=1", "--set", "track.prometheus_interface=nowhere0"],
            capture_output=True, text=True, check=False, timeout=120)
        assert wrong.returncode == 0 and "track.prometheus_interface = nowhere0" in wrong.stderr, wrong.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
