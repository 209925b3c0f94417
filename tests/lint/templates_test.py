# SPDX-License-Identifier: Apache-2.0
"""What batch templates do after exit code 75: back into the queue if the start has made a step."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "# ---- from here to the next such line all templates are alike ----\n"
END = "# -----------------------------------------------------------------\n"
STOP = '{{"kind":"event","event":"stop","step":8,"steps":{},"run":"a","restart":1}}\n'


def templates():
    return sorted((ROOT / "slurm").glob("*.sbatch"))


def common_part(template):
    return template.read_text().split(BEGIN)[1].split(END)[0]


class TemplatesTest(unittest.TestCase):
    def requeued(self, template, code, metrics):
        """Whether the template's function requeues the job, and what it says."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "run").mkdir()
            if metrics is not None:
                (tree / "run/metrics.jsonl").write_text(metrics)
            for name, text in {"squeue": "echo RUNNING", "scontrol": f"echo $* >>{tree}/asked",
                               "sleep": "exit 0", "trireme": f"echo {tree}/run"}.items():
                program = tree / name
                program.write_text(f"#!/bin/sh\n{text}\n")
                program.chmod(0o755)
            script = f'{common_part(template)}\ncode={code}\nrequeue a.conf --set train.steps=3\n'
            done = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False,
                env={"PATH": f"{tree}:{os.environ['PATH']}", "SLURM_JOB_ID": "12"})
            asked = tree / "asked"
            return asked.exists() and asked.read_text() == "requeue 12\n", done.stderr

    def test_the_common_part_is_alike(self):
        self.assertGreater(len(templates()), 4)
        self.assertEqual(len({common_part(template) for template in templates()}), 1)

    def test_a_job_whose_start_has_made_steps_is_requeued(self):
        for metrics in (STOP.format(3), STOP.format(10), STOP.format(0) + STOP.format(1), "", None):
            self.assertEqual(self.requeued(templates()[0], 75, metrics), (True, ""), metrics)

    def test_a_job_whose_start_has_made_none_is_not(self):
        requeued, said = self.requeued(templates()[0], 75, STOP.format(2) + STOP.format(0))
        self.assertFalse(requeued)
        self.assertIn("stopped before its first step", said)

    def test_no_other_exit_code_requeues(self):
        for code in (0, 3, 5):
            self.assertEqual(self.requeued(templates()[0], code, STOP.format(3)), (False, ""))

    def test_every_template_that_requeues_says_of_which_run(self):
        for template in templates():
            text = template.read_text()
            self.assertNotIn("\nrequeue\n", text)


if __name__ == "__main__":
    unittest.main()
