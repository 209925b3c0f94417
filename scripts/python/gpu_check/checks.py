# SPDX-License-Identifier: Apache-2.0
"""Stages that prove: kernels against the reference, training against the CPU, sanitizers."""

import re

from .programs import LAUNCH, find_tool
from .stages import Failed, Skipped, must_succeed, run

# Catch2 with --durations yes: "0.123 s: a test's name".
CASE = re.compile(r"^\d+\.\d+ s: ", re.MULTILINE)
# compute-sanitizer's lines about a fault, unlike its head and its sum.
FAULT = re.compile(r"^========= (?!COMPUTE-SANITIZER|ERROR SUMMARY: 0|RACECHECK SUMMARY: 0|$).*",
                   re.MULTILINE)


# What it says of a machine on which it cannot watch a GPU (some virtual ones).
REFUSED = re.compile(r"^=+ .*(?:Device not supported|[Uu]nable to find|not support).*$", re.MULTILINE)


def own_kernels(sanitizer, folder):
    """Options that leave libraries' kernels alone, which others check: theirs are slow to watch."""
    said = run([sanitizer, "--help"], 20, folder).text
    return ["--kernel-name", "kernel_substring=trireme"] if "--kernel-name" in said else []


class Checks:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder

    def kernels(self, limit):
        program = self.programs.find("gpu_kernels")
        result = must_succeed(run([program, "--durations", "yes"], limit, self.folder), limit)
        libraries = re.search(r"^libraries: (.*)$", result.text, re.MULTILINE)
        by = f" ({libraries.group(1)})" if libraries else ""
        return f"{len(CASE.findall(result.text))} cases equal the reference backend{by}"

    def training(self, ranks, *cases):
        """Cases as Catch2 names them; all without."""
        def work(limit):
            program = self.programs.find("gpu_training")
            command = [*self.programs.launcher(ranks), program, *cases]
            result = must_succeed(run(command, limit, self.folder, LAUNCH), limit)
            rows = re.findall(r"^(\w+ +(?:fp32|f32|bf16) .*?) +([0-9.]+e[-+]\d+)$", result.text,
                              re.MULTILINE)
            if not rows:
                raise Failed(f"no comparison was made:\n{result.tail()}")
            worst = max(rows, key=lambda row: float(row[1]))
            return f"{len(rows)} comparisons, furthest {worst[1]} ({' '.join(worst[0].split())})"
        return work

    def nccl(self, limit):
        """The library itself, whose answers the program checks."""
        command = [*self.programs.launcher(1), self.programs.find("gpu_nccl")]
        result = must_succeed(run(command, limit, self.folder, LAUNCH), limit)
        rows = re.findall(r"^nccl  (.*)$", result.text, re.MULTILINE)
        if len(rows) < 2:
            raise Failed(f"no collective was checked:\n{result.tail()}")
        return f"NCCL {rows[0]}: {len(rows) - 1} checks, the last: {rows[-1]}"

    def sanitizer(self, tool):
        """A random part of the kernel tests, as large as the time allows."""
        def work(limit):
            program = self.programs.find("gpu_kernels")
            sanitizer = find_tool("compute-sanitizer")
            if sanitizer is None:
                raise Skipped("there is no compute-sanitizer (it comes with CUDA's toolkit)")
            def watched(options, seconds):
                return run([sanitizer, "--tool", tool, "--target-processes", "all",
                            "--error-exitcode", "9", *options, program, "--durations", "yes",
                            "--order", "rand", "--rng-seed", "time"], seconds, self.folder)

            result = watched(own_kernels(sanitizer, self.folder), limit)
            cases = len(CASE.findall(result.text))
            if not cases and result.code and not FAULT.search(result.text):
                # A version that names kernels in another way: it watches all.
                result = watched([], max(limit - result.seconds, 1))
                cases = len(CASE.findall(result.text))
            refusal = REFUSED.search(result.text)
            if refusal and not cases:
                raise Skipped(f"compute-sanitizer does not run here: {refusal.group(0).strip()}")
            faults = FAULT.findall(result.text)
            if result.code is not None:
                must_succeed(result, limit)
            elif faults or not cases:
                raise Failed(f"{cases} cases in {limit:.0f} s, and: {' '.join(faults[:3])}")
            part = "all" if result.code is not None else "as many as there was time for"
            return f"{cases} cases without a finding ({part})"
        return work
