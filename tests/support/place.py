# SPDX-License-Identifier: Apache-2.0
"""A folder in which tests start commands and tiny runs, and read what the runs have recorded."""

import contextlib
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


class Place:
    """Runs lie in `runs`/NAME and have the settings of `config` and `settings`; their ranks are
    started by tests/support/mpirun, or by --ranks where `mpirun` is None."""

    def __init__(self, trireme, folder, mpirun=None, config=ROOT / "configs/debug-tiny.conf", settings=None,
                 runs="runs", quiet=True):
        self.folder, self.mpirun, self.config, self.settings = folder, mpirun, config, settings or {}
        self.program = [trireme, "-q"] if quiet else [trireme]
        self.runs = pathlib.Path(runs)
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def make_tokens(self, *options):
        """Of our own pages, with a tokenizer that has learned from them."""
        self.trireme("tokenizer", "train", "--input", *PAGES, "--vocab-size", 512, "--out", "tokenizer.json")
        self.trireme("data", "prepare", "--input", *PAGES, "--tokenizer", "tokenizer.json", *options, "--out", "tokens")
        self.settings = {"data.train": "tokens", "data.tokenizer": "tokenizer.json"} | self.settings

    def end_of(self, words, code):
        end = subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=120, check=False,
                             stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment)
        assert end.returncode == code, f"{words} ended with {end.returncode}\n{end.stdout}{end.stderr}"
        return end

    def trireme(self, *words, code=0):
        """A whole command: what it printed, and what it said if it is not quiet or must fail."""
        end = self.end_of([*self.program, *words], code)
        return end.stdout if code == 0 and "-q" in self.program else end.stdout + end.stderr

    def command(self, ranks, run, settings, *words):
        by_mpirun = self.mpirun and ranks > 1
        words = [*([self.mpirun, ranks] if by_mpirun else []), *self.program, "train", self.config,
                 *([] if by_mpirun or ranks == 1 else ["--ranks", ranks]), *words]
        for key, value in ({"run.directory": self.runs / run} | self.settings | settings).items():
            words += ["--set", f"{key}={value}"]
        return [str(word) for word in words]

    def train(self, ranks, run, settings, *words, code=0):
        """A whole run: what it said."""
        end = self.end_of(self.command(ranks, run, settings, *words), code)
        return end.stdout + end.stderr

    def start(self, ranks, run, settings, **streams):
        """A run that goes on, in a session of its own."""
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams
        return subprocess.Popen(self.command(ranks, run, settings), cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, start_new_session=True, **streams)

    def directory(self, run):
        return self.folder / self.runs / run

    def lines(self, run, kind):
        """Of the record, but for those that are being written or that a kill has cut off."""
        record = self.directory(run) / "metrics.jsonl"
        found = []
        for line in record.read_text().splitlines() if record.exists() else []:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if line["kind"] == kind]
