#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run and `trireme watch` at a terminal of known size, and the same run's log in a file.

usage: terminal_test.py --trireme FILE
"""
import argparse
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.dont_write_bytecode = True
from place import PAGES, Place  # noqa: E402

ESCAPE = re.compile(r"\033\[[?0-9;]*[A-Za-z]")
STEPS = 300


class Terminal:
    """A program whose standard streams are a terminal."""

    def __init__(self, words, columns, environment, folder, rows=30):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(slave)
        self.slave, self.text = slave, ""
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, close_fds=True,
                                        env=environment, cwd=folder, start_new_session=True)

    def resize(self, columns, rows=30):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.text += os.read(self.master, 1 << 16).decode(errors="replace")

    def wait_for(self, part, begin=0, seconds=100):
        deadline = time.monotonic() + seconds
        while part not in self.text[begin:]:
            assert time.monotonic() < deadline, f"no '{part}' in\n{self.text[begin:]}"
            self.read(0.2)

    def end(self, seconds=100):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self.read(0.1)
        self.read(0.2)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)


def drawn(text):
    """Each line that was on the screen, also those that were drawn over."""
    return [line for line in re.split(r"[\r\n]+", ESCAPE.sub("", text)) if line]


class Shown(Place):
    def __init__(self, options, folder):
        super().__init__(options.trireme, folder, settings={
            "parallel.tensor": 2, "numerics.threads": 1, "train.log_every": 10}, quiet=False)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1",
                            "TERM": "xterm", "LANG": "C.UTF-8"}
        self.make_tokens()


def at_a_terminal(place):
    """Ranks that --ranks has started know the terminal, although they write to a pipe."""
    for columns, more in ((100, {}), (60, {"NO_COLOR": "1"})):
        name = f"at-{columns}"
        words = place.command(2, name, {"train.steps": STEPS})
        terminal = Terminal(words, columns, place.environment | more, place.folder)
        try:
            assert terminal.end() == 0, terminal.text
            text = terminal.text
        finally:
            terminal.close()
        for line in drawn(text):
            assert len(line) <= columns, f"{len(line)} columns of {columns}: {line}"
        lines = re.findall(r"\d\d:\d\d:\d\d {2}(step +(\d+)/\d+ {2}loss \d\.\d{4}[^\r\n]*)", ESCAPE.sub("", text))
        assert [int(step) for _, step in lines] == list(range(10, STEPS + 1, 10)), lines
        assert any("↘" in line for line, _ in lines), "the loss falls"
        assert "━" in text and "█" in text, "a status line was drawn"
        assert ("\033[32m" in text) == ("NO_COLOR" not in more), "colours"
        assert "━" not in drawn(text)[-1], "the status line is gone in the end"
        # The rank's file is plain.
        log = (place.directory(name) / "log/r0000.txt").read_text()
        assert "\033" not in log and "\r" not in log
        assert f"step    {STEPS}/{STEPS}" in log and 2 <= log.count(" tok/s ") < STEPS / 10, log


def in_a_file(place):
    """Off a terminal: plain, the first and the last step, and one every ten seconds between."""
    begin = time.monotonic()
    said = place.train(2, "in-a-file", {"train.steps": STEPS})
    seconds = time.monotonic() - begin
    assert "\033" not in said and "\r" not in said, said
    steps = [int(step) for step in re.findall(r"step +(\d+)/\d+  loss", said)]
    assert steps[0] == 10 and steps[-1] == STEPS and len(steps) <= 2 + seconds / 10, steps


def preparing(place):
    """Commands that read much text draw what is done as a run does; off a terminal they draw nothing."""
    text = place.folder / "much.txt"
    docs = "".join(path.read_text() for path in PAGES)
    text.write_text(docs * (1 + 30_000_000 // len(docs)))
    words = [str(word) for word in (
        *place.program, "data", "prepare", "--input", text, "--threads", 1, "--document-separator",
        "blank-line", "--tokenizer", place.folder / "tokenizer.json", "--out", place.folder / "much")]
    for columns in (100, 40):
        terminal = Terminal(words, columns, place.environment, place.folder)
        try:
            assert terminal.end() == 0, terminal.text
        finally:
            terminal.close()
        lines = drawn(terminal.text)
        for line in lines:
            assert len(line) <= columns, f"{len(line)} columns of {columns}: {line}"
        assert any("preparing" in line for line in lines), terminal.text
        assert ("━" in terminal.text) == (columns == 100), terminal.text
        assert "preparing" not in lines[-1] and "tokens" in terminal.text, "the line is gone in the end"
    end = subprocess.run(words, env=place.environment, text=True, capture_output=True, check=True)
    assert "\033" not in end.stderr and "\r" not in end.stderr and "━" not in end.stderr, end.stderr


def watched(place):
    """Drawn again for a new size; q ends it and leaves the run and the terminal as they are."""
    run = place.start(2, "watched", {"train.steps": 10**7})
    terminal = None
    try:
        while not place.lines("watched", "train"):
            assert run.poll() is None
            time.sleep(0.05)
        words = [str(place.program[0]), "watch", "runs/watched", "--interval", "0.2"]
        terminal = Terminal(words, 80, place.environment, place.folder)
        terminal.wait_for("q quits")
        assert terminal.text.startswith("\033[?1049h"), "the screen before comes back"
        begin = len(terminal.text)
        terminal.wait_for("q quits", begin)
        begin = len(terminal.text)
        terminal.resize(50)
        terminal.wait_for("q quits", begin)
        terminal.wait_for("q quits", len(terminal.text))
        last = terminal.text[terminal.text.rindex("\033[H"):]
        for line in drawn(last):
            assert len(line) <= 50, line
        for part in ("running", "loss", "tok/s", "/10000000", "ranks 0-1", "a rank computes"):
            assert part in last, last
        os.write(terminal.master, b"q")
        assert terminal.end() == 0
        assert "\033[?1049l" in terminal.text and termios.tcgetattr(terminal.slave) == terminal.modes
        assert run.poll() is None, "the run goes on"
        once = place.end_of([*words, "--once"], 0).stdout
        assert "\033" not in once and "running" in once.splitlines()[0], once
        terminal.close()
        terminal = Terminal(words, 80, place.environment, place.folder)
        terminal.wait_for("q quits")
        (place.directory("watched") / "STOP").touch()
        assert terminal.end() == 0, "it ends with the run"
        left = ESCAPE.sub("", terminal.text[terminal.text.rindex("\033[?1049l"):])
        assert " stopped " in left and "loss" in left, "the last picture stays"
    finally:
        if terminal:
            terminal.close()
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGTERM)
        run.wait(timeout=60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True, type=lambda text: pathlib.Path(text).resolve())
    with tempfile.TemporaryDirectory(prefix="trireme-terminal-") as folder:
        place = Shown(parser.parse_args(), pathlib.Path(folder))
        at_a_terminal(place)
        in_a_file(place)
        preparing(place)
        watched(place)
    print("each line fits, and the terminal is left as it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
