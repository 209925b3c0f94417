#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `trireme track sync` writes, read back by the trackers' own code: TensorBoard's
EventAccumulator, W&B's DataStore, OpenTelemetry's own messages, and a real MLflow server with a
database, which is also killed and started again while a run is being sent.

usage: trusted_readers_test.py TRIREME, in a virtual environment of its own in .cache (made when
missing, some 700 MB from PyPI)
"""
import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache/trackers-venv"
# Later versions of wandb read these files in Go alone.
PACKAGES = ("tensorboard", "wandb<0.20", "mlflow", "opentelemetry-proto")
SKIPPED = 77

sys.dont_write_bytecode = True
import collector as otlp  # noqa: E402
import made_run  # noqa: E402
import registry_test  # noqa: E402


def enter():
    """Runs this script again inside of the environment."""
    if pathlib.Path(sys.prefix).resolve() == FOLDER.resolve():
        return
    complete = FOLDER / "complete"
    if not complete.exists() or complete.read_text() != str(PACKAGES):
        venv.create(FOLDER, with_pip=True)
        end = subprocess.run([FOLDER / "bin/pip", "install", "--quiet", *PACKAGES], check=False)
        if end.returncode != 0:
            print(f"TRIREME_SKIP: PyPI does not give {', '.join(PACKAGES)}")
            sys.exit(SKIPPED)
        complete.write_text(str(PACKAGES))
    python = str(FOLDER / "bin/python")
    os.execv(python, [python, *sys.argv])


def sync(run, target, code=0):
    words = [sys.argv[1], "-q", "track", "sync", str(run), "--to", target]
    end = subprocess.run(words, text=True, capture_output=True, timeout=300, check=False)
    assert end.returncode == code, f"{words} ended with {end.returncode}\n{end.stderr}"
    return end.stdout.strip() if code == 0 else end.stderr


def whole_run(folder, steps):
    run = made_run.MadeRun(folder, steps)
    run.steps(1, steps)
    run.finish(steps)
    return run


def read_tensorboard(folder):
    from tensorboard.backend.event_processing import event_accumulator
    run = whole_run(folder / "runs/tb", 1000)
    place = pathlib.Path(sync(run.folder, f"tensorboard={folder}/logs"))
    reader = event_accumulator.EventAccumulator(str(place.parent), size_guidance={"scalars": 0})
    reader.Reload()
    losses = reader.Scalars("train/loss")
    assert [event.step for event in losses] == list(range(1, 1001))
    for event in losses:
        assert abs(event.value - run.loss(event.step)) < 1e-6, event
    assert [event.step for event in reader.Scalars("eval/loss")] == list(range(10, 1001, 10))
    assert abs(losses[1].wall_time - losses[0].wall_time - 1.001) < 1e-4, losses[:2]
    print(f"tensorboard: {len(reader.Tags()['scalars'])} curves, 1000 steps each")


def read_wandb(folder):
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal import datastore
    run = whole_run(folder / "runs/wb", 1000)
    place = pathlib.Path(sync(run.folder, f"wandb={folder}"))
    file, = place.glob("*.wandb")
    store = datastore.DataStore()
    store.open_for_scan(str(file))
    steps, kinds, config = [], [], {}
    while True:
        data = store.scan_data()
        if data is None:
            break
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            row = {item.key: json.loads(item.value_json) for item in record.history.item}
            assert row["train/loss"] == run.loss(row["_step"]), row
            assert record.history.step.num == row["_step"]
            steps.append(row["_step"])
        else:
            kinds.append(kind)
        if kind == "run":
            config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
            assert (record.run.project, record.run.display_name) == ("trireme", "made by hand")
        if kind == "exit":
            assert record.exit.exit_code == 0
    assert steps == list(range(1, 1001)) and kinds == ["header", "run", "summary", "exit"], kinds
    assert config["train.steps"] == 1000, config
    print(f"wandb: {len(steps)} rows in {file.stat().st_size} bytes")


def with_base64(message):
    """OTLP writes ids in hexadecimal digits, where JSON of Protocol Buffers has Base64."""
    if isinstance(message, list):
        return [with_base64(each) for each in message]
    if not isinstance(message, dict):
        return message
    return {key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in ("traceId", "spanId", "parentSpanId") else with_base64(value)
            for key, value in message.items()}


def read_otlp(folder):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    run = made_run.MadeRun(folder / "runs/ot", 1000)
    run.steps(1, 1000)
    run.record(35, 2, 1_700_000_000_123_456_789)
    run.finish(1000)
    with otlp.Collector() as collector:
        collector.bodies = []
        sync(run.folder, f"otlp={collector.url}")
    spans, points = [], 0
    for path, body in collector.bodies:
        message = with_base64(json.loads(body))
        # What is no field of the messages is refused.
        if path == "/v1/traces":
            request = json_format.ParseDict(message, trace_service_pb2.ExportTraceServiceRequest())
            for of_resource in request.resource_spans:
                keys = {each.key for each in of_resource.resource.attributes}
                assert {"service.name", "run.id", "service.instance.id"} <= keys, keys
                spans += of_resource.scope_spans[0].spans
        else:
            request = json_format.ParseDict(message, metrics_service_pb2.ExportMetricsServiceRequest())
            for metric in request.resource_metrics[0].scope_metrics[0].metrics:
                points += len(metric.gauge.data_points) + len(metric.sum.data_points)
    assert len({span.span_id for span in spans}) == len(spans) == len(collector.spans)
    steps = [span for span in spans if span.name == "train_step" and not span.parent_span_id]
    assert [(span.end_time_unix_nano - span.start_time_unix_nano) for span in steps] == [250_500_000] * 1000
    send, = {span.start_time_unix_nano for span in spans if span.name == "p2p.send"}
    assert send == 1_700_000_000_123_456_789 + 3_500_000, send
    number, = {each.value.int_value for span in spans if span.name == "p2p.send"
               for each in span.attributes if each.key == "trireme.bytes"}
    assert number == 64
    print(f"opentelemetry: {len(spans)} spans, {points} points")


class Mlflow:
    """A tracking server with sqlite."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url, self.process = f"http://127.0.0.1:{self.port}", None

    def start(self):
        words = [FOLDER / "bin/mlflow", "server", "--port", str(self.port), "--workers", "1",
                 "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db",
                 "--artifacts-destination", str(self.folder / "artifacts")]
        environment = os.environ | {"PATH": f"{FOLDER}/bin:{os.environ['PATH']}", "HOME": str(self.folder)}
        log = open(self.folder / "mlflow.log", "a", encoding="utf-8")
        self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True,
                                        cwd=self.folder, env=environment)
        deadline = time.monotonic() + 240
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return
            assert self.process.poll() is None and time.monotonic() < deadline, \
                (self.folder / "mlflow.log").read_text()
            time.sleep(0.2)

    def stop(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{path}", data=data,
                                         headers={"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=60))

    def history(self, run, key):
        metrics, token = [], ""
        while True:
            answer = self.call(f"metrics/get-history?run_id={run}&metric_key={key}&max_results=1000"
                               + (f"&page_token={token}" if token else ""))
            metrics += answer.get("metrics", [])
            token = answer.get("next_page_token", "")
            if not token:
                return metrics


def killed_while_sending(server, run, words):
    """SIGKILL of the sender in the middle, then of the server; each step is there once."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    note = run.folder / "track"
    while not any(note.glob("mlflow-*.json")):
        assert process.poll() is None
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    server.stop()
    time.sleep(1)
    server.start()
    said = process.communicate(timeout=200)[1]
    # Its patience is half a minute: a slow start of the server is a refusal, and the next call goes on.
    assert process.returncode in (0, 6), said


def register(folder, server):
    """Exported weights, fetched again by MLflow's own client as a version of a model."""
    import mlflow
    run = registry_test.trained_run(sys.argv[1], folder)
    target = f"mlflow={server.url}"
    for _ in range(2):
        subprocess.run(registry_test.words_of(sys.argv[1], folder, "run", target), cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
    sync(run, target)
    mlflow.set_tracking_uri(server.url)
    client = mlflow.MlflowClient()
    versions = client.search_model_versions("name='made here'")
    assert [str(each.version) for each in versions] == ["1"], versions
    version = client.get_model_version("made here", "1")
    assert version.status == "READY" and version.tags["trireme.checkpoint"].endswith("-f32"), version
    found = client.get_run(version.run_id)
    assert found.info.run_name == "made here" and found.data.tags["trireme.run_id"] == \
        version.tags["trireme.run_id"]
    place = pathlib.Path(mlflow.artifacts.download_artifacts("models:/made here/1",
                                                             dst_path=str(folder / "fetched")))
    names = sorted(file.name for file in (folder / "exported").iterdir())
    assert sorted(file.name for file in place.iterdir()) == names and len(names) > 3, names
    for name in names:
        assert (place / name).read_bytes() == (folder / "exported" / name).read_bytes(), name
    print(f"mlflow: version 1 of a model has {len(names)} files, as they were exported")


def read_mlflow(folder):
    server = Mlflow(folder)
    server.start()
    try:
        run = whole_run(folder / "runs/ml", 3000)
        target = f"mlflow={server.url}"
        killed_while_sending(server, run, [sys.argv[1], "-q", "track", "sync", str(run.folder), "--to", target])
        place = sync(run.folder, target)
        sync(run.folder, target)
        experiment = server.call("experiments/get-by-name?experiment_name=trireme")["experiment"]["experiment_id"]
        runs = server.call("runs/search", {"experiment_ids": [experiment]})["runs"]
        assert len(runs) == 1, "a kill has left a second run"
        info = runs[0]["info"]
        assert place.endswith(f"/runs/{info['run_id']}"), place
        assert (info["status"], info["run_name"]) == ("FINISHED", "made by hand"), info
        parameters = {each["key"]: each["value"] for each in runs[0]["data"]["params"]}
        assert parameters["optimizer.learning_rate"] == "0.0003", parameters
        points = server.history(info["run_id"], "train/loss")
        found = sorted((int(each["step"]), each["value"]) for each in points)
        assert found == [(step, run.loss(step)) for step in range(1, 3001)], len(found)
        assert len(server.history(info["run_id"], "eval/loss")) == 300
        files = [each["path"] for each in server.call(f"artifacts/list?run_id={info['run_id']}")["files"]]
        assert files == ["config.resolved.conf"], files
        register(folder, server)
        print(f"mlflow: {len(found)} steps once, {len(parameters)} parameters, artifacts {files}")
    finally:
        server.stop()


def main():
    enter()
    with tempfile.TemporaryDirectory(prefix="trireme-trackers-") as text:
        folder = pathlib.Path(text)
        read_tensorboard(folder)
        read_wandb(folder)
        read_otlp(folder)
        read_mlflow(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
