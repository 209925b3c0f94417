# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, by its DevTools protocol over two pipes."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SKIPPED = 77


def found_or_skip():
    for name in NAMES:
        if path := shutil.which(name):
            return path
    print(f"TRIREME_SKIP: none of {', '.join(NAMES)} (scripts/setup --with-browser installs one)")
    sys.exit(SKIPPED)


class Browser:
    """One page at a time, of any width; a context manager."""

    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory(prefix="trireme-browser-",
                                                   ignore_cleanup_errors=True)
        to_child, self.to_browser = os.pipe()
        self.from_browser, from_child = os.pipe()

        # The protocol's numbers: 3 to read from, 4 to write to. Copies above them first, as the
        # pipes may have these very numbers.
        def give_pipes():
            reads, writes = os.dup(to_child), os.dup(from_child)
            high = [os.dup2(reads, 203), os.dup2(writes, 204)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
             "about:blank"],
            preexec_fn=give_pipes, close_fds=False, stdin=subprocess.DEVNULL,  # noqa: PLW1509
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # It ends when nobody is left at the other end.
        os.close(self.to_browser)
        os.close(self.from_browser)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.from_browser, 1 << 16)
            assert part, f"the browser has ended with {self.process.wait(timeout=30)}"
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            pass
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def open(self, path, width, media="screen"):
        """The file in a window of so many CSS pixels, as the medium shows it."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                  mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.value("new Promise((done) => document.readyState === 'complete' ? done() : "
                   "addEventListener('load', done))")

    def value(self, expression):
        """What the expression comes to, as JSON; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, path):
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
