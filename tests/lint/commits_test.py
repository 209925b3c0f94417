# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits say what the commit does, in few letters."""

import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))
sys.dont_write_bytecode = True

from lint import commits  # noqa: E402


class CommitsTest(unittest.TestCase):
    def finds(self, word, subject):
        faults = list(commits.subject_faults(subject))
        self.assertEqual(len(faults), 1, (subject, faults))
        self.assertIn(word, faults[0])

    def test_a_verb_in_its_base_form_comes_first(self):
        for subject in ("record: move the run lock here", "Move run lock into record", "apps, config: pass --resume on",
                        "src/a.cpp: add a test", "scripts/lint: check paths", "Merge branch 'a'", "Revert \"b\""):
            self.assertEqual(list(commits.subject_faults(subject)), [], subject)
        for subject in ("record: moves the run lock here", "record: moved the run lock", "record: the run lock moves",
                        "numbers are read", "docs: performance in the README", "config: 12 keys", "", "record: "):
            self.finds("is no verb", subject)
        self.finds("has 'is' behind it", "config: check is done")

    def test_a_subject_is_short(self):
        subject = "base: add " + "a" * 62
        self.assertEqual(list(commits.subject_faults(subject)), [])
        self.finds("73 letters", subject + "a")


class HistoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "--quiet", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", "old: a subject of before")
        self.before, commits.BEFORE = commits.BEFORE, self.git("rev-parse", "HEAD").strip()
        self.git("commit", "--quiet", "--allow-empty", "-m", "new: locks are moved\n\nthe body is free")
        self.git("commit", "--quiet", "--allow-empty", "-m", "new: move locks")

    def tearDown(self):
        commits.BEFORE = self.before

    def git(self, *words):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *words]
        return subprocess.run(words, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def found(self, since=None, named=False):
        return commits.check(self.root, types.SimpleNamespace(named=named), types.SimpleNamespace(since=since))

    def test_commits_of_before_are_as_they_are(self):
        findings = self.found()
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("new: locks are moved", findings[0])
        self.assertEqual(self.found(named=True), [])

    def test_the_newest_tag_and_a_named_commit_come_later(self):
        self.assertEqual(self.found(since="HEAD~1"), [])
        self.git("tag", "v1")
        self.assertEqual(self.found(), [])
        self.assertEqual(len(self.found(since="HEAD~2")), 1)

    def test_a_tag_of_before_is_no_begin(self):
        self.git("tag", "v0", commits.BEFORE + "~0")
        self.git("commit", "--quiet", "--allow-empty", "-m", "again: wrong")
        self.assertEqual(len(self.found()), 2)

    def test_history_that_is_not_there_is_passed_over_unless_it_was_named(self):
        commits.BEFORE = "0" * 40
        self.assertEqual(self.found(), [])
        self.assertEqual(len(self.found(since="gone")), 1)


if __name__ == "__main__":
    unittest.main()
