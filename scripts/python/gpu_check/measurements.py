# SPDX-License-Identifier: Apache-2.0
"""Stages that measure: ceilings and kernels, whole steps beside the memory plan, PyTorch."""

import contextlib
import json
import statistics
import subprocess
import sys

from .models import MODELS, data_sheet_flops, write_tokens
from .programs import LAUNCH
from .stages import Failed, Skipped, must_succeed, run

WARM_UP_STEPS = 5
STEPS = 15
# More than are waited for.
MOST_STEPS = 200
# What CUDA's context and the code of kernels may take beside everything that a plan names.
MOST_CONTEXT_BYTES = 1 << 30


def lines_of(text):
    """The lines of a program's output that are JSON objects."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Measurements:
    def __init__(self, programs, root, folder, backend="cuda"):
        self.programs, self.root, self.folder, self.backend = programs, root, folder, backend
        self.gpu = {}
        self.ceilings, self.kernels, self.steps, self.torch = [], [], [], []
        write_tokens(folder / "tokens")

    @contextlib.contextmanager
    def watch(self):
        """What the GPU's memory held before (a context of the watcher's in it) and at most."""
        seen = {}
        watcher = subprocess.Popen([str(self.programs.find("bench_gpu_memory"))], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   start_new_session=True)
        try:
            first = watcher.stdout.readline()
            if not first.startswith("{"):
                raise Skipped(first.partition("TRIREME_SKIP:")[2].strip() or
                              f"the GPU's memory cannot be read: {first.strip()}")
            seen.update(json.loads(first))
            yield seen
            rest, _ = watcher.communicate(timeout=10)
            seen.update(json.loads(rest))
        finally:
            watcher.kill()
            watcher.communicate()

    def look_at_gpu(self, _limit):
        with self.watch() as seen:
            pass
        self.gpu = seen
        return (f"{seen['gpu']}, {seen['total_bytes'] / 2**30:.0f} GiB, "
                f"{seen['multiprocessors']} multiprocessors")

    def measure_kernels(self, limit):
        program = self.programs.find("bench_kernels")
        result = run([program, "--backend", "cuda"], limit, self.folder)
        # What was measured before the end of the time counts as well.
        rows = lines_of(result.text)
        self.ceilings = [row for row in rows if "ceiling" in row]
        self.kernels = [row for row in rows if "kernel" in row]
        must_succeed(result, limit)
        if not self.kernels:
            raise Failed("no kernel was measured")
        low = min(self.kernels, key=lambda row: row["share"])
        return f"{len(self.kernels)} kernels, lowest {low['share']:.0%} of its ceiling: {low['kernel']}"

    def ceiling(self, kind, key):
        """0 where it was not measured."""
        return next((row[key] for row in self.ceilings
                     if row["ceiling"] == kind and row.get("type", "bf16") == "bf16"), 0)

    def peak_flops(self):
        sheet = data_sheet_flops(self.gpu.get("gpu", ""))
        if sheet:
            return sheet, "data sheet, dense bf16"
        measured = self.ceiling("product", "flops_per_second")
        if measured:
            return measured, "largest product of random numbers measured here"
        raise Skipped("no ceiling: this GPU's data sheet is not known, and kernels were not measured")

    def step_of(self, model):
        def work(limit):
            trireme = self.programs.find("trireme")
            config = self.folder / f"{model.name}.conf"
            config.write_text(model.configuration(self.folder, MOST_STEPS, self.backend))
            plan = must_succeed(run([trireme, "plan", config, "--ranks", "1", "--json"], 30,
                                    self.folder), 30)
            plan = json.loads(plan.text[plan.text.index("{"):])
            peak, source = self.peak_flops()
            directory = self.folder / f"run-{model.name}"

            def enough():
                return len(self.steps_in(directory)) >= WARM_UP_STEPS + STEPS

            with self.watch() as seen:
                # Ended from outside: a run that ends by itself writes a checkpoint of many gigabytes.
                must_succeed(run([*self.programs.launcher(1), trireme, "train", config, "--set",
                                  f"run.directory={directory}", "--set",
                                  f"numerics.peak_flops={peak:.0f}"],
                                 limit, self.folder, LAUNCH, enough), limit)
            return self.step_row(model, plan, directory, seen, (peak, source))
        return work

    @staticmethod
    def metrics_in(directory):
        """What the run wrote down; its last line may be half written."""
        metrics = directory / "metrics.jsonl"
        text = metrics.read_text() if metrics.exists() else ""
        return lines_of(text[:text.rfind("\n") + 1])

    def steps_in(self, directory):
        return [line for line in self.metrics_in(directory) if line["kind"] == "train"]

    def memory_in(self, directory, part):
        """What a part of the memory took at most."""
        return max((line[part] for line in self.metrics_in(directory)
                    if line.get("event") == "memory"), default=0)

    @staticmethod
    def check_arenas(row):
        """They are planned to the byte."""
        if row["arena_bytes"] != row["planned_bytes"]:
            raise Failed(f"arenas take {row['arena_bytes']} bytes, planned were {row['planned_bytes']} "
                         "(they must be equal)")

    @staticmethod
    def check_taken(row):
        """What is beside arenas has bounds, by the GPU's own figure."""
        known = row["planned_bytes"] + row["graph_bytes"]
        most = known + sum(row["planned_library_bytes"].values()) + MOST_CONTEXT_BYTES
        if not known <= row["taken_bytes"] <= most:
            raise Failed(f"the GPU's memory grew by {row['taken_bytes'] / 2**30:.2f} GiB; the plan and "
                         f"CUDA graphs say {known / 2**30:.2f} GiB, and with libraries and a context "
                         f"{most / 2**30:.2f} GiB at most")

    def step_row(self, model, plan, directory, seen, peak):
        steps = self.steps_in(directory)[WARM_UP_STEPS:WARM_UP_STEPS + STEPS]
        if len(steps) != STEPS:
            raise Failed(f"{len(steps)} steps were written down, not {STEPS}")
        seconds = statistics.median(line["step_ms"] for line in steps) / 1000
        rate = model.tokens / seconds
        product = self.ceiling("product", "flops_per_second")
        flops = rate * plan["flops_per_token"]
        row = {"model": model.name, "batch": model.batch, "seq": model.seq,
               "parameters": plan["parameters"], "tokens_per_second": rate,
               "flops_per_token": plan["flops_per_token"],
               "mfu": flops / peak[0], "peak_flops": peak[0], "peak_source": peak[1],
               "share_of_measured_product": flops / product if product else None,
               "planned_bytes": plan["largest"]["total"],
               "planned_library_bytes": plan.get("libraries", {}),
               "arena_bytes": self.memory_in(directory, "arena_bytes"),
               # No plan knows it.
               "graph_bytes": self.memory_in(directory, "graph_bytes"),
               "taken_bytes": seen["most_taken_bytes"] - seen["taken_bytes"]}
        self.steps.append(row)
        # Speed is measured, memory is promised.
        self.check_arenas(row)
        self.check_taken(row)
        return f"{rate:,.0f} tokens/s, MFU {row['mfu']:.1%} of {peak[0] / 1e12:.0f} TFLOP/s ({peak[1]})"

    def compare_torch(self, model):
        def work(limit):
            ours = next((row for row in self.steps if row["model"] == model.name), None)
            worker = self.root / "perf/compare/pytorch/worker.py"
            probe = run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"],
                        limit, self.folder)
            left = max(limit - probe.seconds, 1)
            if probe.code != 0:
                raise Skipped(f"{sys.executable} has no torch with a GPU: {probe.tail(1)}")
            shape = {"architecture": model.architecture, "hidden": model.hidden,
                     "layers": model.layers, "heads": model.heads, "kv_heads": model.kv_heads,
                     "intermediate": model.intermediate, "vocabulary": model.vocabulary}
            result = must_succeed(run(
                [sys.executable, worker, "--device", "cuda", "--batch", model.batch, "--seq",
                 model.seq, "--precision", "bf16", "--mode", "compile", "--model",
                 json.dumps(shape), "--orders", f"{WARM_UP_STEPS},{STEPS}"], left, self.folder), left)
            answer = lines_of(result.text)[-1]
            rate = model.tokens / statistics.median(answer["seconds"])
            row = {"model": model.name, "tokens_per_second": rate, "torch": answer["torch"],
                   "peak_bytes": answer["peak_gpu_bytes"]}
            row["ratio"] = ours["tokens_per_second"] / rate if ours else None
            self.torch.append(row)
            against = f"ours is {row['ratio']:.2f} times that" if ours else "ours was not measured"
            return f"torch.compile {rate:,.0f} tokens/s; {against}"
        return work

    def models(self):
        return MODELS
