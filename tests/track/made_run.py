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
                self.write({"kind": "eval", "step": step, "loss": self.loss(step) + 0.5, "tokens": 1000,
                            "seconds": 0.125})
            if step % 25 == 0:
                self.write({"kind": "save", "step": step, "bytes": 1 << 20, "stall_ms": 12.5,
                            "write_ms": 80.25})

    def start_again(self, first, **more):
        """As after a kill: the steps from `first` on come again, with the same numbers."""
        self.restart += 1
        self.write({"kind": "load", "step": first - 1, "seconds": 1.5})
        self.event("start", first, peak_flops=1e12, **more)

    def record(self, step, ranks, origin_ns, job=""):
        """A recording of a step by ranks on nodes of two, as `trireme profile` makes them: a forward
        that sends to the next rank, and a backward."""
        folder = self.folder / f"trace/steps-{step}-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(ranks):
            host, peer = f"node{rank // 2}", (rank + 1) % ranks
            head = ['"schemaVersion": 1', f'"distributedInfo": {{"backend": "trireme", "rank": {rank}, '
                    f'"world_size": {ranks}, "pg_config": []}}', '"deviceProperties": []',
                    '"trireme": ' + json.dumps({"version": 1, "host": host, "job": job,
                                                "origin_unix_ns": origin_ns, "first_step": step,
                                                "last_step": step, "coordinates": {"pp": rank}})]
            spans = [("step", 0, 9000, {"number": step}), ("forward backward", 100, 8000, {}),
                     ("forward", 200, 4000, {"micro_batch": 0, "chunk": 0}),
                     ("layer forward", 300, 3000, {"number": 5}),
                     ("operation", 3500, 5000, {"operation": "send", "group": "pp", "bytes": 64, "seq": 1,
                                                "peer": peer, "tag": 7}),
                     ("backward", 4000, 8000, {"micro_batch": 0, "chunk": 0}), ("update", 8000, 9000, {}),
                     ("evaluation", 9500, 9700, {})]
            events = [json.dumps({"ph": "X", "ts": begin, "dur": end - begin,
                                  "args": more | {"kind": kind, "begin_ns": begin * 1000, "end_ns": end * 1000}})
                      for kind, begin, end, more in spans]
            text = "{\n" + ",\n".join(head) + ',\n"traceEvents": [\n' + ",\n".join(events) + "\n]}\n"
            (folder / f"rank-{rank:04}.json").write_text(text)

    def finish(self, last):
        self.event("done", last)

    @staticmethod
    def loss(step):
        return 2.0 + 3.0 * math.exp(-step / 300.0) + 0.01 * (step % 5)
