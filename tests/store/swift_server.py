# SPDX-License-Identifier: Apache-2.0
"""An object store on this machine for tests: OpenStack Swift with its S3 interface, one replica, in a
folder of its own, with user test:tester and bucket "steps". Runs COMMAND with the variables that S3
clients read, and ends with its exit code.

usage: swift_server.py [--folder DIR] COMMAND [ARGUMENT...]
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from s3_client import Bucket

SKIPPED = 77
NEEDED = ["swift-proxy-server", "swift-account-server", "swift-container-server",
          "swift-object-server", "swift-ring-builder"]
USER, KEY = "test:tester", "testing-key-of-the-tests"

PIPELINE = "catch_errors cache listing_formats bulk s3api tempauth slo dlo proxy-server"
COMMON = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = {workers}
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_facility = LOG_LOCAL0
log_address = {folder}/no-log
log_level = ERROR
"""
STORAGE = COMMON + """
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
PROXY = COMMON + """
[pipeline:main]
pipeline = """ + PIPELINE + """
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = """ + KEY + """ .admin
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
min_segment_size = 5242880
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write_rings(folder, ports):
    for kind, port in ports.items():
        builder = f"{kind}.builder"
        for words in [["create", "4", "1", "0"],
                      ["add", f"r1z1-127.0.0.1:{port}/disk", "1"], ["rebalance"]]:
            subprocess.run(["swift-ring-builder", builder, *words], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start(folder):
    """The servers, and the port that speaks S3."""
    account, container, object_, proxy, memcached = free_ports(5)
    storage = {"account": account, "container": container, "object": object_}
    (folder / "devices" / "disk").mkdir(parents=True)
    (folder / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = tests\nswift_hash_path_prefix = tests\n")
    write_rings(folder, storage)
    facts = {"folder": folder, "memcached": memcached,
             "user": subprocess.check_output(["id", "-un"], text=True).strip()}
    for kind, port in storage.items():
        (folder / f"{kind}.conf").write_text(
            STORAGE.format(kind=kind, port=port, workers=2 if kind == "object" else 0, **facts))
    (folder / "proxy.conf").write_text(PROXY.format(port=proxy, workers=2, **facts))
    log = open(folder / "log", "w", encoding="utf-8")
    servers = []
    for kind in ["account", "container", "object", "proxy"]:
        servers.append(subprocess.Popen(
            [f"swift-{kind}-server", folder / f"{kind}.conf"], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"SWIFT_DIR": str(folder)}))
    until = time.time() + 60
    for port in [*storage.values(), proxy]:
        while not answers(port):
            if time.time() > until or any(each.poll() is not None for each in servers):
                raise OSError(f"the object store does not start: {(folder / 'log').read_text()}")
            time.sleep(0.05)
    return servers, proxy


def stop(servers):
    for server in servers:
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    for program in NEEDED:
        if not shutil.which(program):
            print(f"TRIREME_SKIP: no {program} (scripts/setup --with-store installs it)")
            return SKIPPED
    with tempfile.TemporaryDirectory(prefix="trireme-swift-", dir=arguments.folder) as name:
        servers, port = start(pathlib.Path(name))
        try:
            environment = os.environ | {
                "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": KEY,
                "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}"}
            Bucket("steps", environment).make()
            return subprocess.run(arguments.command, check=False, env=environment).returncode
        finally:
            stop(servers)


if __name__ == "__main__":
    sys.exit(main())
