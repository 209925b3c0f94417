# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check over a GPU that is made of the host: its own programs say to it what it expects
of a GPU. What it measures there are not the times of anything.

usage: gpu_check_test.py --programs FOLDER
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))
sys.dont_write_bytecode = True

from gpu_check import models  # noqa: E402
from gpu_check.measurements import Measurements  # noqa: E402
from gpu_check.programs import IN_BUILD, Programs  # noqa: E402

# What stands for each program, and words that keep it short.
PROGRAMS = {"gpu_kernels": ["simulated_gpu_kernels", "*order*"], "bench_kernels": ["simulated_gpu_bench_kernels"],
            "bench_gpu_memory": ["simulated_gpu_bench_memory"], "trireme": ["trireme"]}
ARGUMENTS = argparse.Namespace()


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        for name, (program, *words) in PROGRAMS.items():
            script = self.folder / "build" / IN_BUILD[name]
            script.parent.mkdir(parents=True, exist_ok=True)
            quoted = " ".join(f"'{word}'" for word in [f"{ARGUMENTS.programs}/{program}", *words])
            script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
            script.chmod(0o755)

    def test_its_programs_and_it_understand_each_other(self):
        command = [sys.executable, ROOT / "scripts/gpu-check", "--build", self.folder / "build",
                   "--out", self.folder / "out"]
        for stage in ("kernels", "ceilings"):
            command += ["--only", stage]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=200)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("equal the reference backend (products by cuBLASLt", ended.stdout)
        [report] = (self.folder / "out").glob("*.json")
        written = json.loads(report.read_text())
        kernels = {row["kernel"] for row in written["kernels"]}
        for name in ("rms norm backward", "adamw", "quantise to e4m3", "product of FP8 copies",
                     "own attention backward, 2 heads of 64, seq 8"):
            self.assertIn(name, kernels)
        self.assertEqual({row["ceiling"] for row in written["ceilings"]}, {"copy", "product"})

    def test_the_steps_of_a_model_are_planned_run_and_read(self):
        with unittest.mock.patch.object(models, "LARGEST_TOKEN", 512):
            measured = Measurements(Programs(ROOT, self.folder / "build"), ROOT, self.folder)
        measured.look_at_gpu(10)
        measured.ceilings = [{"ceiling": "product", "type": "bf16", "flops_per_second": 1e12}]
        # A GPU that is made of the host is each process's own: the watcher does not see the run's.
        with unittest.mock.patch.object(Measurements, "check_taken"):
            said = measured.step_of(models.Model("tiny", "gpt2", 128, 1, 2, 2, 128, 512, 8, 1))(120)
        self.assertIn("tokens/s", said)
        [row] = measured.steps
        self.assertGreater(row["planned_bytes"], 4 * row["parameters"])
        self.assertEqual(set(row["planned_library_bytes"]), {"cuBLASLt", "cuDNN"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
