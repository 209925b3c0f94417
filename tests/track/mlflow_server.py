# SPDX-License-Identifier: Apache-2.0
"""What `trireme` asks of an MLflow tracking server, with its answers and refusals, for tests that have
no MLflow: runs, artifacts, registered models and their versions."""
import http.server
import json
import threading
import urllib.parse


class Refused(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class MlflowServer:
    """with MlflowServer() as server: ... server.versions, server.artifacts {path: bytes}."""

    def __init__(self, artifact_root="mlflow-artifacts:/1"):
        self.artifact_root = artifact_root
        self.runs, self.models, self.versions, self.artifacts = {}, {}, [], {}
        self.experiment, self.requests = None, 0
        # Requests up to this one are answered; the next one is done, the event is set, and no answer
        # comes.
        self.silent, self.silent_behind = None, None
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                url = urllib.parse.urlparse(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                length = int(self.headers.get("Content-Length", 0))
                server.requests += 1
                number, status = server.requests, 200
                try:
                    artifacts = "/api/2.0/mlflow-artifacts/artifacts/"
                    if self.command == "PUT" and url.path.startswith(artifacts):
                        server.store(urllib.parse.unquote(url.path[len(artifacts):]), self.rfile, length)
                        body = {}
                    else:
                        sent = json.loads(self.rfile.read(length) or "null")
                        body = server.call(self.command, url.path, query, sent)
                except Refused as refused:
                    status, body = refused.status, {"error_code": refused.code, "message": "no"}
                if server.silent and number > server.silent_behind:
                    server.silent.set()
                    return
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = answer  # noqa: N815 (names of http.server)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def store(self, path, stream, length):
        data = bytearray()
        while len(data) < length:
            block = stream.read(min(1 << 20, length - len(data)))
            if not block:
                return  # the sender was killed
            data += block
        self.artifacts[path] = bytes(data)

    def call(self, method, path, query, sent):
        name = path.removeprefix("/api/2.0/mlflow/")
        calls = {("GET", "experiments/get-by-name"): self.find_experiment,
                 ("POST", "experiments/create"): self.make_experiment,
                 ("POST", "runs/search"): self.search_runs, ("POST", "runs/create"): self.make_run,
                 ("GET", "runs/get"): lambda _: {"run": {"info": self.runs[query["run_id"]]["info"]}},
                 ("POST", "runs/log-batch"): self.log_batch, ("POST", "runs/update"): lambda _: {},
                 ("GET", "registered-models/get"): lambda _: self.model(query["name"]),
                 ("POST", "registered-models/create"): self.make_model,
                 ("GET", "model-versions/search"): lambda _: self.search_versions(query),
                 ("POST", "model-versions/create"): self.make_version}
        if (method, name) not in calls:
            raise Refused(404, "ENDPOINT_NOT_FOUND")
        return calls[method, name](sent)

    def find_experiment(self, _):
        if not self.experiment:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST")
        return {"experiment": {"experiment_id": "1", "name": self.experiment}}

    def make_experiment(self, sent):
        if self.experiment:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS")
        self.experiment = sent["name"]
        return {"experiment_id": "1"}

    def search_runs(self, sent):
        key, _, value = sent["filter"].partition(" = ")
        tag, wanted = key.removeprefix('tags."').removesuffix('"'), value.strip("'")
        found = [run for run in self.runs.values()
                 if {"key": tag, "value": wanted} in run["data"]["tags"]]
        for run in found:
            run["data"]["params"] = [{"key": key, "value": value} for key, value in run["params"].items()]
        return {"runs": found} if found else {}

    def make_run(self, sent):
        number = f"run{len(self.runs)}"
        info = {"run_id": number, "run_name": sent["run_name"],
                "artifact_uri": f"{self.artifact_root}/{number}/artifacts"}
        self.runs[number] = {"info": info, "data": {"tags": sent["tags"]}, "params": {}}
        return {"run": {"info": info}}

    def log_batch(self, sent):
        known = self.runs[sent["run_id"]]["params"]
        for each in sent.get("params", []):
            if known.setdefault(each["key"], each["value"]) != each["value"]:
                raise Refused(400, "INVALID_PARAMETER_VALUE")
        return {}

    def model(self, name):
        if name not in self.models:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST")
        return {"registered_model": {"name": name}}

    def make_model(self, sent):
        if sent["name"] in self.models:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS")
        self.models[sent["name"]] = 0
        return self.model(sent["name"])

    def search_versions(self, query):
        run = query["filter"].removeprefix("run_id='").removesuffix("'")
        found = [each for each in self.versions if each["run_id"] == run]
        begin = int(query.get("page_token", 0))
        # Pages of two: a real server's have up to a thousand and more.
        more = {"next_page_token": str(begin + 2)} if len(found) > begin + 2 else {}
        return {"model_versions": found[begin:begin + 2]} | more

    def make_version(self, sent):
        self.model(sent["name"])
        self.models[sent["name"]] += 1
        version = {key: sent[key] for key in ("name", "source", "run_id", "tags")}
        version["version"] = str(self.models[sent["name"]])
        self.versions.append(version)
        return {"model_version": version}

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
