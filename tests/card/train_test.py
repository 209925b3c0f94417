"""`trireme` with numerics.backend = cuda on a card that is made of the host: training beside the
CPU, by one rank and by two, with and without CUDA graphs; a checkpoint that the CPU continues;
evaluation and products.

usage: train_test.py --mpirun SCRIPT --trireme FILE --config FILE
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))

from train_fault_test import write_tokens  # noqa: E402

STEPS = 3
# Small, but with rows that libraries' fused work takes.
SETTINGS = {"model.num_hidden_layers": 2, "train.sequence_length": 16, "train.global_batch": 4,
            "train.steps": STEPS, "checkpoint.every_steps": STEPS, "numerics.threads": 1,
            "numerics.peak_flops": 1e12, "run.binding": "none", "optimizer.warmup_steps": 0, "optimizer.curve": "constant"}
ARGUMENTS = argparse.Namespace()


class TrainTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        write_tokens(self.folder / "tokens")

    def trireme(self, ranks, command, **settings):
        """What it said; settings with __ for dots."""
        words = [ARGUMENTS.mpirun, str(ranks), ARGUMENTS.trireme, command, ARGUMENTS.config]
        given = {**SETTINGS, "data.train": self.folder / "tokens"}
        given.update({key.replace("__", "."): value for key, value in settings.items()})
        for key, value in given.items():
            words += ["--set", f"{key}={value}"]
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stdout[-3000:] + ended.stderr[-6000:])
        return ended.stdout + ended.stderr

    def train(self, name, ranks=1, **settings):
        run = self.folder / name
        self.said = self.trireme(ranks, "train", run__directory=run, **settings)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        return [(line["loss"], line["grad_norm"]) for line in lines if line["kind"] == "train"]

    def assert_close(self, found, wanted, tolerance):
        self.assertEqual(len(found), len(wanted))
        for (loss, _), (expected, _) in zip(found, wanted):
            self.assertLessEqual(abs(loss - expected), tolerance * abs(expected))

    def test_a_card_trains_as_the_cpu_does_in_both_precisions(self):
        for precision, tolerance in (("fp32", 1e-4), ("bf16", 1e-2)):
            with self.subTest(precision=precision):
                on_cpu = self.train(f"cpu-{precision}", numerics__backend="cpu",
                                    numerics__precision=precision)
                on_card = self.train(f"card-{precision}", numerics__backend="cuda",
                                     numerics__precision=precision)
                self.assert_close(on_card, on_cpu, tolerance)
                self.assertIn("cuBLASLt", self.said)
                again = self.train(f"again-{precision}", numerics__backend="cuda",
                                   numerics__precision=precision)
                self.assertEqual(again, on_card)

    def test_two_ranks_on_one_card_train_as_one_does(self):
        alone = self.train("alone", numerics__backend="cuda")
        for layout in ("tensor", "pipeline", "data"):
            with self.subTest(layout=layout):
                together = self.train(layout, ranks=2, numerics__backend="cuda",
                                      **{f"parallel__{layout}": 2})
                self.assert_close(together, alone, 1e-5)

    def test_the_cpu_goes_on_with_what_a_card_has_saved(self):
        whole = self.train("whole", numerics__backend="cpu", train__steps=2 * STEPS)
        self.train("moved", numerics__backend="cuda")
        moved = self.train("moved", numerics__backend="cpu", train__steps=2 * STEPS)
        self.assert_close(moved, whole, 1e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("mpirun", "trireme", "config"):
        parser.add_argument(f"--{name}", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
