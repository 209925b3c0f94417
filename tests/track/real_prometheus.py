# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus server for tests, and the queries of the dashboards in configs/grafana."""
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(name):
    found = shutil.which(name)
    if found is None:
        print(f"TRIREME_SKIP: no {name} (apt-get install prometheus)")
        sys.exit(SKIPPED)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    def __init__(self, folder, scrape):
        """`scrape`: the lines of its one scrape configuration but its name."""
        binary = program("prometheus")
        self.url = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 200ms}\nscrape_configs:\n- job_name: trireme\n"
                          + "".join(f"  {line}\n" for line in scrape))
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


def queries(*names):
    """Of all panels of these dashboards, with each run chosen."""
    for name in names:
        for panel in json.loads((ROOT / "configs/grafana" / name).read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$run", ".*").replace("$__rate_interval", "4s")
                yield f"{name}: {panel['title']}", expression
