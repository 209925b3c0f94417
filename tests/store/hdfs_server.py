# SPDX-License-Identifier: Apache-2.0
"""WebHDFS on this machine for tests: a NameNode that redirects data to a DataNode, over a folder. It
follows the REST interface's document, for no package has a real HDFS. Runs COMMAND with
HADOOP_USER_NAME and the server's address in TRIREME_HDFS, and ends with its exit code.

usage: hdfs_server.py COMMAND [ARGUMENT...]
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

USER = "tester"


class Node(http.server.BaseHTTPRequestHandler):
    """Both nodes: they differ in what they are asked."""

    protocol_version = "HTTP/1.1"
    root = None
    data_node = None
    lock = threading.Lock()

    def answer(self, status, body=b"", **headers):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, exception, message):
        self.answer(status, {"RemoteException": {"exception": exception, "message": message,
                                                 "javaClassName": f"org.apache.hadoop.{exception}"}})

    def status_of(self, path, suffix):
        return {"pathSuffix": suffix, "type": "DIRECTORY" if path.is_dir() else "FILE",
                "length": 0 if path.is_dir() else path.stat().st_size, "owner": USER,
                "modificationTime": int(path.stat().st_mtime * 1000)}

    def handle_one(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        name = urllib.parse.unquote(url.path.removeprefix("/webhdfs/v1"))
        path = self.root / name.lstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if query.get("user.name") != USER:
            return self.refuse(403, "AccessControlException", "Permission denied")
        if query["op"] in ("CREATE", "APPEND", "OPEN") and self.server is not self.data_node:
            if body:
                return self.refuse(400, "IllegalArgumentException", "data go to a data node")
            port = self.data_node.server_address[1]
            return self.answer(307, Location=f"http://127.0.0.1:{port}{self.path}")
        with self.lock:
            return getattr(self, f"op_{query['op']}")(path, name, query, body)

    do_GET = do_PUT = do_POST = do_DELETE = lambda self: self.handle_one()

    def op_CREATE(self, path, name, query, body):
        if path.exists() and query.get("overwrite") != "true":
            return self.refuse(403, "FileAlreadyExistsException", f"{name} already exists")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return self.answer(201)

    def op_APPEND(self, path, name, _, body):
        if not path.is_file():
            return self.missing(name)
        with path.open("ab") as file:
            file.write(body)
        return self.answer(200)

    def op_TRUNCATE(self, path, _, query, __):
        os.truncate(path, int(query["newlength"]))
        return self.answer(200, {"boolean": True})

    def op_OPEN(self, path, name, query, _):
        if not path.is_file():
            return self.missing(name)
        data = path.read_bytes()
        offset = int(query.get("offset", 0))
        if offset > len(data):
            return self.refuse(403, "IOException", f"Offset={offset} out of the range")
        return self.answer(200, data[offset:offset + int(query.get("length", len(data)))])

    def op_GETFILESTATUS(self, path, name, *_):
        if not path.exists():
            return self.missing(name)
        return self.answer(200, {"FileStatus": self.status_of(path, "")})

    def op_LISTSTATUS(self, path, name, *_):
        if not path.exists():
            return self.missing(name)
        found = [path] if path.is_file() else sorted(path.iterdir())
        return self.answer(200, {"FileStatuses": {"FileStatus": [
            self.status_of(each, each.name) for each in found]}})

    def op_DELETE(self, path, _, query, __):
        if not path.exists():
            return self.answer(200, {"boolean": False})
        if path.is_dir():
            if query.get("recursive") != "true" and any(path.iterdir()):
                return self.refuse(403, "PathIsNotEmptyDirectoryException", "is non empty")
            shutil.rmtree(path)
        else:
            path.unlink()
        return self.answer(200, {"boolean": True})

    def op_RENAME(self, path, name, query, _):
        target = self.root / query["destination"].lstrip("/")
        overwrites = "OVERWRITE" in query.get("renameoptions", "")
        if not path.exists():
            return self.missing(name) if overwrites else self.answer(200, {"boolean": False})
        if target.exists() and not overwrites:
            return self.answer(200, {"boolean": False})
        path.rename(target)
        return self.answer(200) if overwrites else self.answer(200, {"boolean": True})

    def missing(self, name):
        return self.refuse(404, "FileNotFoundException", f"File does not exist: {name}")

    def log_message(self, *_):
        pass


def main():
    with tempfile.TemporaryDirectory(prefix="trireme-hdfs-") as name:
        Node.root = pathlib.Path(name)
        servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node) for _ in range(2)]
        Node.data_node = servers[1]
        for server in servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return subprocess.run(sys.argv[1:], check=False, env=os.environ | {
            "HADOOP_USER_NAME": USER,
            "TRIREME_HDFS": f"127.0.0.1:{servers[0].server_address[1]}"}).returncode


if __name__ == "__main__":
    sys.exit(main())
