# SPDX-License-Identifier: Apache-2.0
"""A collector of OTLP/HTTP metrics in JSON for tests: keeps what it was sent, or is out of order."""
import http.server
import json
import threading


class Collector:
    """with Collector() as collector: ... collector.points is {name: {time in ns: value}}."""

    def __init__(self, port=0):
        self.points, self.refuses, self.requests, self.repeated = {}, 0, 0, 0
        # While it is set to an event, requests are taken, the event is set, and no answer comes.
        self.silent = None
        self.resource = {}
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802 (name of http.server)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests += 1
                code = 200
                if collector.refuses:
                    code = collector.refuses
                elif self.path != "/v1/metrics" or self.headers["Content-Type"] != "application/json":
                    code = 404
                else:
                    collector.take(json.loads(body))
                    if collector.silent:
                        collector.silent.set()
                        return
                self.send_response(code)
                self.end_headers()
                self.wfile.write(b"{}" if code == 200 else b"out of order")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, request):
        for of_run in request["resourceMetrics"]:
            self.resource = {each["key"]: each["value"]["stringValue"]
                             for each in of_run["resource"]["attributes"]}
            for metric in of_run["scopeMetrics"][0]["metrics"]:
                points = metric.get("gauge") or metric["sum"]
                known = self.points.setdefault(metric["name"], {})
                for point in points["dataPoints"]:
                    assert "attributes" not in point, "a step is no attribute"
                    time = int(point["timeUnixNano"])
                    if time in known:
                        self.repeated += 1
                        assert known[time] == point["asDouble"], "a point has changed"
                    known[time] = point["asDouble"]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
