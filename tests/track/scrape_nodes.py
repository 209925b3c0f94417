#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the nodes of a run that goes on: promtool finds nothing wrong with what
any of them answers, and the queries of the dashboards of the cluster and its network have data.

usage: scrape_nodes.py RUN NODES RANKS
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
import real_prometheus  # noqa: E402
from endpoint_test import wait_for  # noqa: E402


def main():
    run, nodes, ranks = pathlib.Path(sys.argv[1]).absolute(), int(sys.argv[2]), int(sys.argv[3])
    listed = run / "track/prometheus.targets.json"
    wait_for(listed.exists, "no targets")
    [entry] = json.loads(listed.read_text())
    assert len(set(entry["targets"])) == nodes, entry
    secret = run / "track/prometheus.token"
    for target in entry["targets"]:
        request = urllib.request.Request(f"http://{target}/metrics",
                                         headers={"Authorization": f"Bearer {secret.read_text()}"})
        try:
            answer = urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{target}: {error.code} {error.headers} {error.read()[:500]}") from error
        with answer:
            lint = subprocess.run([real_prometheus.program("promtool"), "check", "metrics"],
                                  input=answer.read(), capture_output=True, check=False)
        assert lint.returncode == 0 and not lint.stderr, lint.stderr
    with tempfile.TemporaryDirectory(prefix="trireme-scrape-") as text:
        server = real_prometheus.Prometheus(pathlib.Path(text), [
            f"file_sd_configs: [{{files: ['{listed}'], refresh_interval: 1s}}]",
            f"authorization: {{credentials_file: '{secret}'}}"])
        try:
            server.wait_for(f"count(trireme_node_ranks) == {nodes}")
            server.wait_for(f"sum(trireme_node_ranks) == {ranks}")
            server.wait_for(f"count(trireme_rank_step > 0) == {ranks}")
            assert len(server.query("trireme_loss")) == 1
            for where, expression in real_prometheus.queries("cluster.json", "network.json"):
                wait_for(lambda: server.query(expression), f"{where}: no data for {expression}", 30)
            print(f"promtool finds nothing on {nodes} nodes, and all queries have data")
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
