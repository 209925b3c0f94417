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
# Of a card that is made of the host.
GRAPH_BYTES = 16 << 20


class TrainTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        write_tokens(self.folder / "tokens")
        self.variables = {}

    def trireme(self, ranks, command, **settings):
        """What it said; settings with __ for dots."""
        words = [ARGUMENTS.mpirun, str(ranks), ARGUMENTS.trireme, command, ARGUMENTS.config]
        given = {**SETTINGS, "data.train": self.folder / "tokens"}
        given.update({key.replace("__", "."): value for key, value in settings.items()})
        for key, value in given.items():
            words += ["--set", f"{key}={value}"]
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), **self.variables)
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stdout[-3000:] + ended.stderr[-6000:])
        return ended.stdout + ended.stderr

    def train(self, name, ranks=1, **settings):
        run = self.folder / name
        self.said = self.trireme(ranks, "train", run__directory=run, **settings)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        self.memory = [line for line in lines if line.get("event") == "memory"]
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

    def test_graphs_change_no_bit_and_are_nobody_elses_memory(self):
        def rest(event):
            return (event["taken_bytes"] - event["arena_bytes"] - event["graph_bytes"] -
                    sum(event["library_bytes"].values()))

        for ranks, layout in ((1, "data"), (2, "tensor")):
            with self.subTest(layout=layout):
                given = {"ranks": ranks, "numerics__backend": "cuda", f"parallel__{layout}": ranks}
                plain = self.train(f"plain-{layout}", **given)
                self.assertEqual([event["graph_bytes"] for event in self.memory], [0])
                self.assertNotIn("CUDA graphs", self.said)
                without = rest(self.memory[-1])
                graphs = self.train(f"graphs-{layout}", numerics__cuda_graphs="true", **given)
                self.assertEqual(graphs, plain)
                # A forward and a backward; between tensor-parallel sums there are many.
                self.assertGreaterEqual(self.memory[-1]["graph_bytes"],
                                        GRAPH_BYTES * (2 if ranks == 1 else 8))
                self.assertEqual(self.memory[-1]["graph_bytes"] % GRAPH_BYTES, 0)
                self.assertIn("CUDA graphs", self.said)
                # Arenas of the recorded batches are rounded up by the card.
                self.assertLess(abs(rest(self.memory[-1]) - without), GRAPH_BYTES)

    def test_a_card_has_as_many_queues_as_there_are_unless_the_user_chose(self):
        self.train("unset", numerics__backend="cuda")
        self.assertIn("CUDA_DEVICE_MAX_CONNECTIONS=32 set", self.said)
        self.variables = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        self.train("one", numerics__backend="cuda")
        self.assertIn("CUDA_DEVICE_MAX_CONNECTIONS = 1 (a rank has up to", self.said)
        self.train("cpu", numerics__backend="cpu")
        self.assertNotIn("CUDA_DEVICE_MAX_CONNECTIONS", self.said)

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
