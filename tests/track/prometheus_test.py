#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Prometheus file of `trireme track sync` as Prometheus reads it: promtool finds nothing wrong,
and every query of the dashboards in configs/grafana finds a run in a real server that scrapes it.

usage: prometheus_test.py TRIREME [FOLDER of prometheus and promtool]
"""
import contextlib
import functools
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
import made_run  # noqa: E402

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(name):
    found = shutil.which(name, path=sys.argv[2] if len(sys.argv) > 2 else None)
    if found is None:
        print(f"TRIREME_SKIP: no {name} (apt-get install prometheus)")
        sys.exit(SKIPPED)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Exposition(http.server.SimpleHTTPRequestHandler):
    """The folder's files, as node_exporter would show them."""

    def guess_type(self, path):
        return "text/plain; version=0.0.4"

    def log_message(self, *_):
        pass


class Prometheus:
    def __init__(self, binary, folder, target):
        self.url = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 200ms}\nscrape_configs:\n- job_name: trireme\n"
                          f"  metrics_path: /run.prom\n  static_configs: [{{targets: ['{target}']}}]\n")
        self.log = open(folder / "prometheus.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [binary, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self.log, stderr=self.log)

    def query(self, text):
        with contextlib.suppress(OSError):
            url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": text})
            return json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]
        return []

    def wait_for(self, text):
        deadline = time.monotonic() + 60
        while not self.query(text):
            assert self.process.poll() is None and time.monotonic() < deadline, \
                pathlib.Path(self.log.name).read_text()
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def queries():
    """Of all panels, with each run chosen."""
    for path in sorted((ROOT / "configs/grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"].replace("$run", ".*")


def main():
    promtool, binary = program("promtool"), program("prometheus")
    with tempfile.TemporaryDirectory(prefix="trireme-prometheus-") as text:
        folder = pathlib.Path(text)
        run = made_run.MadeRun(folder / "run", 100)
        run.steps(1, 100)
        file = folder / "www/run.prom"
        subprocess.run([sys.argv[1], "-q", "track", "sync", run.folder, "--to", f"prometheus={file}"],
                       check=True, stdout=subprocess.DEVNULL)
        lint = subprocess.run([promtool, "check", "metrics"], stdin=file.open(), text=True,
                              capture_output=True, check=False)
        assert lint.returncode == 0 and not lint.stderr, lint.stderr
        handler = functools.partial(Exposition, directory=folder / "www")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        prometheus = Prometheus(binary, folder, f"127.0.0.1:{server.server_port}")
        try:
            prometheus.wait_for("trireme_step")
            assert prometheus.query("trireme_step")[0]["value"][1] == "100"
            assert prometheus.query('trireme_tokens_total{run="made by hand"}')[0]["value"][1] == "409600"
            asked = 0
            for where, expression in queries():
                assert prometheus.query(expression), f"{where}: no data for {expression}"
                asked += 1
            assert asked > 15, asked
            print(f"promtool finds nothing, and {asked} queries of the dashboards have data")
        finally:
            prometheus.stop()
            server.shutdown()
            server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
