# SPDX-License-Identifier: Apache-2.0
"""No command of a page is overlooked: faults planted in pages are found."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import blocks  # noqa: E402
import commands_test  # noqa: E402


def page(language, *lines):
    return blocks.read_page("\n".join(["# Page", "", f"```{language}", *lines, "```", ""]))


class BlocksTest(unittest.TestCase):
    def test_each_line_of_a_shell_is_a_command(self):
        for language in ("sh", "bash"):
            read = page(language, "trireme plan a.conf", "", "# a remark", "unheard-of --now   # soon")
            self.assertEqual(read.commands, [(4, "trireme plan a.conf"), (7, "unheard-of --now   # soon")])
            self.assertEqual(read.findings, [])

    def test_a_command_may_have_several_lines(self):
        read = page("sh", "mpirun -n 2 \\", "  trireme train a.conf", "ls")
        self.assertEqual(read.commands, [(4, "mpirun -n 2 trireme train a.conf"), (6, "ls")])
        self.assertEqual(len(page("sh", "ls \\").findings), 1)

    def test_a_console_shows_answers_too(self):
        read = page("console", "$ sudo scripts/cluster up", "cluster: instance default is ready")
        self.assertEqual(read.commands, [(4, "sudo scripts/cluster up")])

    def test_a_prompt_is_a_command_wherever_it_stands(self):
        for text in ("$ ls\n", "1. First:\n   $ ls\n", "```text\n$ ls\n```\n"):
            self.assertEqual([command for _, command in blocks.read_page(text).commands], ["ls"])

    def test_a_block_names_a_language_that_is_known(self):
        for language in ("", "shell", "zsh"):
            self.assertEqual(len(page(language, "ls").findings), 1)

    def test_a_command_does_not_hide_in_another_block(self):
        self.assertEqual(len(page("text", "trireme plan a.conf").findings), 1)
        self.assertEqual(len(page("ini", "OMP_NUM_THREADS=1 build/bin/trireme plan").findings), 1)
        self.assertEqual(page("text", "sbatch --tensor-parallel=2 ──► plugin").findings, [])
        self.assertEqual(page("yaml", "scrape_configs:\n- job_name: trireme").findings, [])
        self.assertEqual(len(page("yaml", "trireme track sync runs/a").findings), 1)

    def test_a_block_ends(self):
        self.assertEqual(len(blocks.read_page("```sh\nls\n").findings), 1)

    def test_a_new_command_is_run_unless_an_exception_names_it(self):
        self.assertEqual(commands_test.reason_to_skip("unheard-of --now"), (None, None))
        self.assertEqual(commands_test.reason_to_skip("trireme train --cuda"), (None, None))
        self.assertIsNotNone(commands_test.reason_to_skip("scripts/test unit mpi")[1])


if __name__ == "__main__":
    unittest.main()
