# SPDX-License-Identifier: Apache-2.0
"""Every script answers --help and refuses what it does not know, before it does anything."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("scripts/*", "perf/compare/*/run", "tests/golden/*/record", ".ci/run")
# Words that are no options are names of files or of programs there.
TAKES_WORDS = {"scripts/lint"}
# What a script would begin its work with: in the tests they only leave a mark.
PROGRAMS = ("apt-get", "cargo", "ccache", "cmake", "ctest", "curl", "git", "mpirun", "nsenter", "pip",
            "pip3", "sbatch", "slurmctld", "srun", "sudo", "tar", "ucx_perftest", "unshare", "wget")


def scripts():
    """Paths from the root of what a person is meant to start."""
    found = [path for place in PLACES for path in sorted(ROOT.glob(place)) if path.is_file()]
    return [path.relative_to(ROOT) for path in found if os.access(path, os.X_OK)]


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


class ScriptsTest(unittest.TestCase):
    """Runs copies of the scripts in a tree that has nothing else, and compares the tree."""
    maxDiff = 2000

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        skip = shutil.ignore_patterns("__pycache__", "results", "*.safetensors")
        for name in ("scripts", "perf/compare", "tests/golden/launch", ".ci"):
            shutil.copytree(ROOT / name, self.tree / name, ignore=skip)
        # scripts/fuzz knows fuzzers by the names of their seeds.
        (self.tree / "tests/fuzz/corpus/json").mkdir(parents=True)
        pretended = self.tree / "pretended"
        pretended.mkdir()
        for name in PROGRAMS:
            program = pretended / name
            program.write_text(f'#!/bin/sh\necho {name} >>"{self.tree}/started"\nexit 1\n')
            program.chmod(0o755)
        (self.tree / "home").mkdir()
        self.environment = {
            "PATH": f"{pretended}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.tree / "home"),
            "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.tree / "home"),
            "TRIREME_CLUSTER_ROOT": str(self.tree / "home/cluster"), "PIP_NO_INDEX": "1"}
        self.before = snapshot(self.tree)

    def start(self, script, *arguments):
        done = subprocess.run([self.tree / script, *arguments], env=self.environment, text=True,
                              cwd=self.tree / "home", stdin=subprocess.DEVNULL, timeout=60,
                              capture_output=True, check=False)
        now = snapshot(self.tree)
        changed = sorted(name for name in now.keys() | self.before.keys()
                         if now.get(name, b"") != self.before.get(name, b""))
        self.before = now
        self.assertEqual(changed, [], f"{script} {arguments} did something")
        return done

    def test_the_walk_finds_them(self):
        names = {str(path) for path in scripts()}
        self.assertLessEqual({"scripts/setup", "scripts/test", "scripts/golden-models",
                              "perf/compare/pytorch/run", ".ci/run"}, names)

    def test_help_is_printed_and_nothing_else_is_done(self):
        for script in scripts():
            for option in ("--help", "-h"):
                with self.subTest(script=str(script), option=option):
                    done = self.start(script, option)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"usage: {script}", done.stdout)

    def test_an_unknown_argument_is_refused_before_anything_is_done(self):
        for script in scripts():
            words = ["--no-such-option"]
            if str(script) not in TAKES_WORDS:
                words.append("no-such-word")
            for word in words:
                with self.subTest(script=str(script), word=word):
                    done = self.start(script, word)
                    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                    # Some ask for what they need before they look at what else there is.
                    self.assertRegex(done.stderr, f"{word}|required")


if __name__ == "__main__":
    sys.exit(unittest.main())
