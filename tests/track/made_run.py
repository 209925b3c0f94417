# SPDX-License-Identifier: Apache-2.0
"""A run directory made by hand, whose metrics.jsonl can grow as a run's does."""
import json
import math

CONFIG = "[run]\nname = made by hand\n[train]\nsteps = {steps}\n[optimizer]\nlearning_rate = 0.0003\n"


def time_text(step):
    milliseconds = 1000 * step + step % 7
    return (f"2026-11-21T{milliseconds // 3600000 % 24:02}:{milliseconds // 60000 % 60:02}:"
            f"{milliseconds // 1000 % 60:02}.{milliseconds % 1000:03}Z")


class MadeRun:
    """`folder` is the run; each step takes a second and a few milliseconds."""

    def __init__(self, folder, steps):
        self.folder, self.restart = folder, 0
        folder.mkdir(parents=True)
        (folder / "config.resolved.conf").write_text(CONFIG.format(steps=steps))
        self.event("start", 1, peak_flops=1e12)

    def write(self, line):
        line = line | {"run": "made by hand", "restart": self.restart}
        line.setdefault("time", time_text(line["step"]))
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def event(self, name, step, **more):
        self.write({"kind": "event", "event": name, "step": step} | more)

    def steps(self, first, last):
        for step in range(first, last + 1):
            self.write({"kind": "train", "step": step, "loss": self.loss(step), "grad_norm": 1.5,
                        "learning_rate": 3e-4 / step, "tokens": 4096 * step, "step_ms": 250.5,
                        "tokens_per_second": 16352.0, "mfu": 0.41, "bubble_ms": 1.25,
                        "exposed_comm_ms": 20.5, "tensor_comm_ms": 30.25, "data_ms": 0.5})
            if step % 10 == 0:
                self.write({"kind": "eval", "step": step, "loss": self.loss(step) + 0.5, "tokens": 1000})
            if step % 25 == 0:
                self.write({"kind": "save", "step": step, "bytes": 1 << 20, "stall_ms": 12.5})

    def start_again(self, first):
        """As after a kill: the steps from `first` on come again, with the same numbers."""
        self.restart += 1
        self.event("start", first, peak_flops=1e12)

    def finish(self, last):
        self.event("done", last)

    @staticmethod
    def loss(step):
        return 2.0 + 3.0 * math.exp(-step / 300.0) + 0.01 * (step % 5)
