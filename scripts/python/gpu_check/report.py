# SPDX-License-Identifier: Apache-2.0
"""What a call found, as JSON and Markdown named by date and GPU."""

import datetime
import json
import re

from .stages import PASS

FORMULAS = """\
Share of a kernel bound by memory: bytes that must move at least (each tensor once) by time, over the
GPU's own copy (bytes read and written). Share of others: multiplications and additions that the mask leaves,
over the product of 8192 x 8192 x 8192 random numbers. MFU: tokens a second x (6 N + 12 L h s) over the
peak that the row names; nothing is taken off for the mask, nothing added for recomputation. Memory
planned: what the measuring arenas count; taken: the GPU's own figure, before and at most during the run;
libraries: what the plan sets aside for their workspaces, at most; CUDA graphs: by how much the GPU's
figure grew while they were made; what is left between them is CUDA's context, and negative by what libraries did not take."""


def gib(count):
    return f"{count / 2**30:.2f} GiB"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def kernel_rows(kernels):
    for row in kernels:
        rate = (f"{row['bytes_per_second'] / 1e9:.0f} GB/s" if "bytes" in row
                else f"{row['flops_per_second'] / 1e12:.1f} TFLOP/s")
        yield [row["kernel"], row["type"], f"{row['seconds'] * 1e6:.1f}", rate, f"{row['share']:.0%}"]


def step_rows(steps):
    for row in steps:
        yield [row["model"], f"{row['batch']} x {row['seq']}", f"{row['tokens_per_second']:,.0f}",
               f"{row['mfu']:.1%} of {row['peak_flops'] / 1e12:.0f} TFLOP/s ({row['peak_source']})",
               gib(row["planned_bytes"]), gib(sum(row["planned_library_bytes"].values())),
               gib(row["graph_bytes"]), gib(row["taken_bytes"]),
               gib(row["taken_bytes"] - row["planned_bytes"] - row["graph_bytes"] -
                   sum(row["planned_library_bytes"].values()))]


def ceiling_text(row):
    if row["ceiling"] == "copy":
        return f"- copy inside the GPU: {row['bytes_per_second'] / 1e9:.0f} GB/s read and written"
    return (f"- product of {row['side']} x {row['side']} x {row['side']} random numbers, {row['type']}: "
            f"{row['flops_per_second'] / 1e12:.1f} TFLOP/s")


def markdown(session, measured, when):
    gpu = measured.gpu.get("gpu", "no GPU")
    parts = [f"# gpu-check, {gpu}, {when:%Y-%m-%d %H:%M} UTC\n", session.summary() + "\n",
             table(["stage", "state", "s", "what was found"],
                   [[outcome.stage, outcome.state, f"{outcome.seconds:.0f}",
                     outcome.reason.splitlines()[0] if outcome.reason else ""]
                    for outcome in session.outcomes])]
    if measured.ceilings:
        parts += ["## Ceilings\n", "\n".join(map(ceiling_text, measured.ceilings)) + "\n"]
    if measured.kernels:
        parts += ["## Kernels\n", table(["kernel", "type", "us", "rate", "share of the ceiling"],
                                        kernel_rows(measured.kernels))]
    if measured.steps:
        parts += ["## Whole steps, bf16\n",
                  table(["model", "tokens", "tokens/s", "MFU", "planned", "libraries at most",
                         "CUDA graphs", "taken", "between"],
                        step_rows(measured.steps))]
    if measured.torch:
        parts += ["## torch.compile\n",
                  table(["model", "torch", "tokens/s", "ours over it", "its peak memory"],
                        [[row["model"], row["torch"], f"{row['tokens_per_second']:,.0f}",
                          f"{row['ratio']:.2f}" if row["ratio"] else "-", gib(row["peak_bytes"])]
                         for row in measured.torch])]
    return "\n".join([*parts, "## What divides what\n", FORMULAS + "\n"])


# Of each program's output as much is kept, its end.
MOST_LOG_BYTES = 200_000


class Keeper:
    """Writes what has been found so far, again and again, under one name: whoever ends the call
    before its end has what was found until then."""

    def __init__(self, measured, folder, logs):
        self.measured, self.folder, self.logs = measured, folder, logs
        self.when = datetime.datetime.now(datetime.timezone.utc)
        self.stem = None

    def keep(self, session):
        if not any(outcome.state == PASS for outcome in session.outcomes):
            return
        if self.stem is None:
            name = self.measured.gpu.get("gpu", "no GPU").lower()
            gpu = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
            self.folder.mkdir(parents=True, exist_ok=True)
            self.stem = self.folder / f"gpu-check-{self.when:%Y-%m-%d-%H%M}-{gpu}"
        measured = self.measured
        self.write(".json", json.dumps({
            "date": self.when.isoformat(timespec="seconds"), "gpu": measured.gpu,
            "stages": [vars(outcome) for outcome in session.outcomes],
            "ceilings": measured.ceilings, "kernels": measured.kernels, "steps": measured.steps,
            "torch": measured.torch}, indent=1) + "\n")
        self.write(".md", markdown(session, measured, self.when))
        self.write(".log", "".join(self.outputs()))

    def outputs(self):
        for log in sorted(self.logs.glob("*.log")):
            text = log.read_bytes()[-MOST_LOG_BYTES:].decode(errors="replace")
            yield f"==== {log.name}\n{text}\n"

    def write(self, ending, text):
        """Whole or not at all."""
        unfinished = self.stem.with_suffix(".part")
        unfinished.write_text(text)
        unfinished.replace(self.stem.with_suffix(ending))
