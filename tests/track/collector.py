# SPDX-License-Identifier: Apache-2.0
"""A collector of OTLP/HTTP in JSON for tests: keeps metrics and spans that it was sent, or is out of
order."""
import http.server
import json
import threading


def attributes(message):
    """{key: value} of a resource or a span."""
    kinds = {"stringValue": str, "intValue": int, "doubleValue": float}
    found = {}
    for each in message["attributes"]:
        (kind, value), = each["value"].items()
        # Whole numbers are texts in JSON of Protocol Buffers.
        assert isinstance(value, float if kind == "doubleValue" else str), each
        assert each["key"] not in found, each
        found[each["key"]] = kinds[kind](value)
    return found


class Collector:
    """with Collector() as collector: ... collector.points is {name: {time in ns: value}};
    collector.spans is {span id: {"trace", "name", "parent", "begin", "end" (ns), "attributes",
    "resource"}}."""

    def __init__(self, port=0):
        self.points, self.refuses, self.requests, self.repeated = {}, 0, 0, 0
        # While it is set to an event, requests are taken, the event is set, and no answer comes.
        self.silent = None
        self.resource = {}
        # [(path, body)], if it is set to a list.
        self.bodies = None
        self.spans, self.repeated_spans, self.takes_traces = {}, 0, True
        # Requests up to this one are answered; the next one is taken, and gets no answer.
        self.silent_behind = None
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802 (name of http.server)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests += 1
                if collector.bodies is not None:
                    collector.bodies.append((self.path, body))
                code = 200
                if collector.refuses:
                    code = collector.refuses
                elif self.headers["Content-Type"] != "application/json":
                    code = 415
                elif self.path == "/v1/metrics":
                    collector.take(json.loads(body))
                elif self.path == "/v1/traces" and collector.takes_traces:
                    collector.take_spans(json.loads(body))
                else:
                    code = 404
                if code == 200:
                    behind = collector.silent_behind
                    if collector.silent and (behind is None or collector.requests > behind):
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

    def take_spans(self, request):
        for of_resource in request["resourceSpans"]:
            resource = attributes(of_resource["resource"])
            scope, = of_resource["scopeSpans"]
            assert scope["scope"] == {"name": "trireme"} and scope["spans"], scope
            for sent in scope["spans"]:
                assert sent["kind"] == 1, sent
                assert len(bytes.fromhex(sent["traceId"])) == 16, sent
                assert len(bytes.fromhex(sent["spanId"])) == 8, sent
                span = {"trace": sent["traceId"], "name": sent["name"], "parent": sent.get("parentSpanId"),
                        "begin": int(sent["startTimeUnixNano"]), "end": int(sent["endTimeUnixNano"]),
                        "attributes": attributes(sent), "resource": resource}
                if sent["spanId"] in self.spans:
                    self.repeated_spans += 1
                    assert self.spans[sent["spanId"]] == span, "a span has changed"
                self.spans[sent["spanId"]] = span

    def check_trees(self):
        """Each span's parent is there, in its trace, and begins before it; on a rank it also ends
        after it, unless the span is beside what the thread does."""
        for span in self.spans.values():
            assert 0 < span["begin"] <= span["end"], span
            if span["parent"] is None:
                continue
            parent = self.spans[span["parent"]]
            assert parent["trace"] == span["trace"], (span, parent)
            if "trireme.rank" in parent["resource"]:
                assert parent["resource"] == span["resource"], (span, parent)
                assert parent["begin"] <= span["begin"], (span, parent)
                is_beside = span["name"].startswith(("collective.", "p2p."))
                assert is_beside or span["end"] <= parent["end"], (span, parent)
            else:
                assert parent["name"] == "train_step" and parent["parent"] is None, (span, parent)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
