# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check over pretended programs: what it makes of what they say, and of their silence."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/python"))
from gpu_check.models import DATA_SHEET, data_sheet_flops

PROGRAMS = {
    "bench_gpu_memory": """
        import json, sys
        print(json.dumps({"gpu": "NVIDIA H200", "total_bytes": 150 << 30, "multiprocessors": 132,
                          "taken_bytes": 1 << 30}), flush=True)
        sys.stdin.read()
        print(json.dumps({"most_taken_bytes": 5 << 30}))""",
    "mpirun": "import os, sys; os.execv(sys.argv[3], sys.argv[3:])",
    "gpu_kernels": """
        print("libraries: attention by cuDNN 9.19.1")
        print("0.100 s: norms")
        print("0.200 s: attention")""",
    "gpu_training": """
        print("\\x1b[0mgpt2   fp32 pp1 x dp1 x tp1    cpu            2.00e-06")
        print("llama  bf16 pp1 x dp1 x tp1    cpu            3.00e-03")""",
    "gpu_nccl": """
        print("nccl  2.28.9 of libnccl.so.2")
        print("nccl  all_reduce fp32 16777216 bytes in 12.0 us")""",
    "bench_kernels": """
        import json
        print(json.dumps({"ceiling": "copy", "bytes_per_second": 4e12}))
        print(json.dumps({"ceiling": "product", "type": "bf16", "side": 8192, "flops_per_second": 7e14}))
        print(json.dumps({"kernel": "rms norm", "type": "bf16", "seconds": 1e-3, "bytes": 3000000000,
                          "bytes_per_second": 3e12, "share": 0.75}))
        print(json.dumps({"kernel": "attention", "type": "bf16", "seconds": 1e-3, "flops": 4e11,
                          "flops_per_second": 4e14, "share": 4 / 7}))""",
    "trireme": """
        import json, pathlib, sys
        if sys.argv[1] == "plan":
            print(json.dumps({"parameters": 1000000000, "flops_per_token": 7e9, "largest": {"total": 3 << 30},
                              "libraries": {"cuBLASLt": 1 << 28, "cuDNN": 1 << 28}}))
            sys.exit()
        folder = pathlib.Path(next(word for word in sys.argv if "run.directory=" in word).split("=")[1])
        folder.mkdir()
        memory = {"kind": "event", "event": "memory", "step": 3, "graph_bytes": 1 << 28,
                  "arena_bytes": 3 << 30}
        (folder / "metrics.jsonl").write_text(json.dumps(memory) + "\\n" + "".join(
            json.dumps({"kind": "train", "step": step, "step_ms": 900 if step < 5 else 100}) + "\\n"
            for step in range(20)))
        import time; time.sleep(60)""",
    "compute-sanitizer": """
        import subprocess, sys, time
        if "--help" in sys.argv:
            sys.exit("  --kernel-name arg")
        if "kernel_substring=trireme" not in sys.argv:
            sys.exit("watches libraries too")
        print("========= COMPUTE-SANITIZER")
        print("0.100 s: norms", flush=True)
        if "racecheck" in sys.argv:
            print("========= Error: Race reported between Read access at norm", flush=True)
        time.sleep(60)""",
}


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.bundle = pathlib.Path(holder.name) / "bundle"
        shared = self.bundle / "share/trireme"
        for part in ("scripts/python/gpu_check", "perf/compare/pytorch"):
            shutil.copytree(ROOT / part, shared / part)
        shutil.copy(ROOT / "scripts/gpu-check", shared / "scripts")
        (self.bundle / "libexec").mkdir()
        (self.bundle / "libexec/trireme").touch()
        (self.bundle / "bin").mkdir()
        for name, text in PROGRAMS.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.bundle / "bin" / name
        path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text).strip()}\n")
        path.chmod(0o755)

    def check(self, *arguments):
        """Exit code, states by stage, the JSON written (or None) and the output."""
        out = self.bundle / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, str(self.bundle / "share/trireme/scripts/gpu-check"), "--out", str(out),
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=60, env={**os.environ, "PATH": f"{self.bundle}/bin:{os.environ['PATH']}"})
        states = {line[6:28].strip(): line[:4] for line in done.stdout.splitlines()
                  if line[:4] in ("PASS", "FAIL", "SKIP")}
        files = list(out.glob("*.json"))
        return done.returncode, states, json.loads(files[0].read_text()) if files else None, done.stdout

    def test_what_programs_measured_is_divided_by_what_is_said(self):
        code, states, found, text = self.check("--only", "k", "--only", "training", "--only", "c",
                                               "--only", "step")
        self.assertEqual(code, 0, text)
        self.assertEqual(set(states.values()), {"PASS"}, text)
        row = found["steps"][0]
        self.assertEqual(row["model"], "gpt2-124m")
        # 32 x 1024 tokens in 0.1 s; the first steps, which warm up, do not count.
        self.assertAlmostEqual(row["tokens_per_second"], 327680)
        self.assertEqual(row["flops_per_token"], 7e9)
        self.assertAlmostEqual(row["mfu"], 327680 * 7e9 / 989.4e12)
        self.assertEqual((row["planned_bytes"], row["taken_bytes"]), (3 << 30, 4 << 30))
        self.assertEqual(row["planned_library_bytes"], {"cuBLASLt": 1 << 28, "cuDNN": 1 << 28})
        self.assertIn("2 cases equal the reference backend (attention by cuDNN 9.19.1)", text)
        self.assertIn("2 comparisons, furthest 3.00e-03", text)
        report = next((self.bundle / "out").glob("gpu-check-*-nvidia-h200.md")).read_text()
        self.assertIn("| rms norm | bf16 | 1000.0 | 3000 GB/s | 75% |", report)
        self.assertIn("| 3.00 GiB | 0.50 GiB | 0.25 GiB | 4.00 GiB | 0.25 GiB |", report)
        self.assertIn("| attention | bf16 | 1000.0 | 400.0 TFLOP/s | 57% |", report)
        self.assertIn("furthest 3.00e-03 (llama bf16 pp1 x dp1 x tp1 cpu)", text)

    def test_memory_that_differs_from_the_plan_fails(self):
        trireme = PROGRAMS["trireme"]
        for what, text in (("arenas take 3221225480 bytes", trireme.replace(
                '"arena_bytes": 3 << 30', '"arena_bytes": (3 << 30) + 8')),
                           ("grew by 4.00 GiB", trireme.replace("1 << 28}})", "-3 << 28}})")),
                           ("grew by 4.00 GiB", trireme.replace("3 << 30", "4 << 30"))):
            with self.subTest(what=what):
                self.write("trireme", text)
                code, states, found, said = self.check("--only", "step gpt2-124m")
                self.assertEqual((code, states["step gpt2-124m"]), (1, "FAIL"), said)
                self.assertIn(what, said)
                # What was measured is told all the same.
                self.assertEqual(len(found["steps"]), 1)

    def test_data_sheets_are_those_of_the_program(self):
        text = (ROOT / "src/device/speed/data_sheet.cpp").read_text()
        rows = re.findall(r'Row\{\{"(\w+)", "(\w*)"\}, ([0-9.e]+),', text)
        self.assertGreater(len(rows), 10)
        self.assertEqual([(f"{one} {other}".strip(), float(flops)) for one, other, flops in rows],
                         list(DATA_SHEET))
        self.assertEqual(data_sheet_flops("NVIDIA H100 PCIe"), 756e12)
        self.assertEqual(data_sheet_flops("NVIDIA A100-SXM4-80GB"), 312e12)
        self.assertIsNone(data_sheet_flops("NVIDIA RTX"))

    def test_a_library_of_which_nothing_was_checked_has_not_passed(self):
        code, states, _, text = self.check("--only", "NCCL")
        self.assertEqual((code, states["NCCL, one rank"]), (0, "PASS"), text)
        self.assertIn("NCCL 2.28.9 of libnccl.so.2: 1 checks", text)
        self.write("gpu_nccl", "print('All tests passed')")
        code, states, _, text = self.check("--only", "NCCL")
        self.assertEqual((code, states["NCCL, one rank"]), (1, "FAIL"), text)
        self.write("gpu_nccl", "print('TRIREME_SKIP: there is no GPU')")
        code, states, _, text = self.check("--only", "NCCL")
        self.assertEqual((code, states["NCCL, one rank"]), (77, "SKIP"), text)

    def test_a_stage_that_fails_does_not_end_the_others(self):
        self.write("gpu_kernels", "print('0.1 s: norms'); raise SystemExit('norm: 3 is not 4')")
        self.write("bench_kernels", "print('not a number')")
        code, states, _, text = self.check("--only", "k", "--only", "c", "--only", "training")
        self.assertEqual(code, 1, text)
        self.assertEqual(states, {"gpu": "PASS", "kernels": "FAIL", "training": "PASS",
                                  "ceilings and kernels": "FAIL"}, text)
        self.assertIn("norm: 3 is not 4", text)

    def test_a_program_that_hangs_is_ended_with_all_that_it_started(self):
        # In a process group of its own, as mpirun starts ranks.
        self.write("gpu_training", f"""
            import os, pathlib, subprocess
            child = subprocess.Popen(['sleep', '61'], preexec_fn=lambda: os.setpgid(0, 0))
            pathlib.Path({str(self.bundle / 'child')!r}).write_text(str(child.pid))
            print('waiting', flush=True)
            child.wait()""")
        code, states, _, text = self.check("--only", "eight", "--only", "mem", "--seconds", "3")
        self.assertEqual(code, 1, text)
        self.assertEqual(states["eight ranks, one GPU"], "FAIL")
        self.assertEqual(states["memcheck"], "SKIP")
        self.assertIn("waiting", text)
        status = pathlib.Path(f"/proc/{(self.bundle / 'child').read_text()}/status")
        self.assertTrue(not status.exists() or "(zombie)" in status.read_text())
        self.assertIn("no time is left", text)

    def test_a_sanitizer_passes_a_part_without_findings_and_no_other(self):
        code, states, _, text = self.check("--only", "memcheck", "--seconds", "4")
        self.assertEqual((code, states["memcheck"]), (0, "PASS"), text)
        self.assertIn("1 cases without a finding (as many as there was time for)", text)
        code, states, _, text = self.check("--only", "racecheck", "--seconds", "4")
        self.assertEqual((code, states["racecheck"]), (1, "FAIL"), text)
        self.assertIn("Race reported", text)

    def test_a_sanitizer_that_cannot_watch_the_gpu_is_no_fault_of_the_kernels(self):
        self.write("compute-sanitizer", """
            print("========= Error: Device not supported. Please refer to the documentation")
            raise SystemExit(9)""")
        code, states, _, text = self.check("--only", "memcheck")
        self.assertEqual((code, states["memcheck"]), (77, "SKIP"), text)
        self.assertIn("Device not supported", text)

    def test_what_was_found_stays_when_the_call_is_killed(self):
        self.write("gpu_training", "import time; print('waiting', flush=True); time.sleep(61)")
        self.write("gpu_kernels", "print('norm: 3 is not 4'); raise SystemExit(1)")
        out = self.bundle / "out"
        with subprocess.Popen(
                [sys.executable, str(self.bundle / "share/trireme/scripts/gpu-check"), "--out",
                 str(out), "--only", "kernels", "--only", "training"], stdout=subprocess.PIPE,
                env={**os.environ, "PATH": f"{self.bundle}/bin:{os.environ['PATH']}"}) as call:
            for line in call.stdout:
                if b"kernels" in line:
                    break
            # The last of the files that a stage writes.
            while not any("norm: 3 is not 4" in file.read_text() for file in out.glob("*.log")):
                self.assertIsNone(call.poll())
            call.kill()
        found = json.loads(next(out.glob("*.json")).read_text())
        self.assertEqual([(stage["stage"], stage["state"]) for stage in found["stages"]],
                         [("gpu", "PASS"), ("kernels", "FAIL")])

    def test_without_a_gpu_every_stage_is_skipped_with_the_reason(self):
        self.write("bench_gpu_memory", "print('TRIREME_SKIP: no CUDA-capable device'); exit(77)")
        code, states, found, text = self.check()
        self.assertEqual(code, 77, text)
        self.assertEqual(set(states.values()), {"SKIP"}, text)
        self.assertEqual(len(states), 17, text)
        self.assertEqual(text.count("no CUDA-capable device"), 17, text)
        self.assertIsNone(found)
        self.assertIn("0 passed, 0 failed, 17 skipped", text)

    def test_a_test_that_skips_itself_has_not_passed(self):
        self.write("gpu_kernels", "print('TRIREME_SKIP: too old a driver')")
        code, states, _, text = self.check("--only", "kernels")
        self.assertEqual((code, states["kernels"]), (77, "SKIP"), text)


if __name__ == "__main__":
    unittest.main()
