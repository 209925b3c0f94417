#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Prometheus file of `trireme track sync` as Prometheus reads it: promtool finds nothing wrong,
and every query of the dashboard of runs finds one in a real server that scrapes it.

usage: prometheus_test.py TRIREME [FOLDER of prometheus and promtool]
"""
import functools
import http.server
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import made_run  # noqa: E402
import real_prometheus  # noqa: E402


class Exposition(http.server.SimpleHTTPRequestHandler):
    """The folder's files, as node_exporter would show them."""

    def guess_type(self, path):
        return "text/plain; version=0.0.4"

    def log_message(self, *_):
        pass


def main():
    promtool = real_prometheus.program("promtool")
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
        prometheus = real_prometheus.Prometheus(folder, [
            "metrics_path: /run.prom",
            f"static_configs: [{{targets: ['127.0.0.1:{server.server_port}']}}]"])
        try:
            prometheus.wait_for("trireme_step")
            assert prometheus.query("trireme_step")[0]["value"][1] == "100"
            assert prometheus.query('trireme_tokens_total{run="made by hand"}')[0]["value"][1] == "409600"
            asked = 0
            for where, expression in real_prometheus.queries("run.json"):
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
