# SPDX-License-Identifier: Apache-2.0
"""An object store behind TLS: its certificate is asked for, and must be one that is trusted and names
the host.

usage: tls_test.py --trireme FILE
"""

import argparse
import http.server
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading

CHECKPOINT = 6
LISTING = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"


class EmptyBucket(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        EmptyBucket.asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(LISTING)))
        self.end_headers()
        self.wfile.write(LISTING)

    def log_message(self, *_):
        pass


def certificate(folder, name, host):
    """Key and certificate in one file, and the certificate alone."""
    key, cert, both = (folder / f"{name}.{kind}" for kind in ("key", "pem", "both"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={host}",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return both, cert


def serve(both):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyBucket)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        both, trusted = certificate(folder, "good", "IP:127.0.0.1")
        of_other, other = certificate(folder, "other", "DNS:elsewhere.example")
        good, elsewhere = serve(both), serve(of_other)

        def listed(port, authorities):
            environment = {"PATH": "/usr/bin:/bin", "AWS_ACCESS_KEY_ID": "id",
                           "AWS_SECRET_ACCESS_KEY": "hidden",
                           "AWS_ENDPOINT_URL_S3": f"https://127.0.0.1:{port}"}
            if authorities:
                environment["AWS_CA_BUNDLE"] = str(authorities)
            before = EmptyBucket.asked
            end = subprocess.run([arguments.trireme, "checkpoint", "list", "s3://bucket/steps"],
                                 env=environment, capture_output=True, text=True, timeout=60,
                                 check=False)
            return end, EmptyBucket.asked - before

        end, asked = listed(good, trusted)
        assert asked > 0 and "certificate" not in end.stderr, end.stderr
        for port, authorities in ((good, None), (good, other), (elsewhere, other)):
            end, asked = listed(port, authorities)
            assert end.returncode == CHECKPOINT, end
            assert asked == 0, "a request was sent to a server that is not trusted"
            assert "AWS_CA_BUNDLE" in end.stderr and "hidden" not in end.stderr, end.stderr
            assert "certificate" in end.stderr.lower(), end.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
