# SPDX-License-Identifier: Apache-2.0
"""eval, generate and probe on two ranks that are asked to end (SIGTERM to each, as a launcher sends it)
while they compute: they have nothing to save, and end with the code of the signal, at once and all.

usage: terminate_test.py --mpirun SCRIPT --trireme FILE --config FILE
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from fault_test import RECORDER, Checks, processes_with
from stop_test import waits_for_signal
from train_fault_test import write_tokens

RANKS = 2
TERMINATED = 128 + signal.SIGTERM
MOST_SECONDS = 20


def run_trireme(arguments, *words):
    result = subprocess.run([arguments.trireme, *map(str, words)], capture_output=True, text=True,
                            timeout=60)
    if result.returncode != 0:
        raise RuntimeError(f"trireme {words[0]} ends with {result.returncode}: {result.stderr}")


def prepare(arguments, folder):
    """A run, and for each command more to do than this test has time for."""
    write_tokens(folder / "tokens")
    write_tokens(folder / "long", documents=4000)
    run_trireme(arguments, "train", arguments.config, "--set", f"data.train={folder / 'tokens'}",
                "--set", f"run.directory={folder / 'run'}", "--set", "train.steps=1",
                "--set", "optimizer.warmup_steps=0", "--set", "numerics.backend=reference")
    (folder / "text").write_text("the cat sat on the mat and the dog sat on the log\n" * 50)
    run_trireme(arguments, "tokenizer", "train", "--input", folder / "text", "--vocab-size", 260,
                "--out", folder / "tokenizer.json")
    (folder / "prompts").write_text("the cat\n" * 100000)
    (folder / "ids.json").write_text(json.dumps([[1 + i % 500 for i in range(32)]] * 20000))


def commands(arguments, folder):
    weights = ["--weights", folder / "run"]
    return {
        "eval": ["eval", arguments.config, *weights, "--data", folder / "long",
                 "--set", "train.eval_batches=0", "--set", "numerics.backend=reference"],
        "generate": ["generate", *weights, "--tokenizer", folder / "tokenizer.json",
                     "--prompts", folder / "prompts", "--max-tokens", "20"],
        "probe": ["probe", *weights, "--tokens", folder / "ids.json",
                  "--out", folder / "probe.safetensors", "--backend", "reference"],
    }


def ranks_of(arguments, folder):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry.name.isdigit() and os.readlink(entry / "exe") == arguments.trireme
                    and str(folder) in (entry / "cmdline").read_text(errors="replace")):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def strike(arguments, folder, launcher):
    until = time.time() + 40
    while launcher.poll() is None and time.time() < until:
        ranks = ranks_of(arguments, folder)
        if len(ranks) == RANKS and all(waits_for_signal(rank, signal.SIGTERM) for rank in ranks):
            # From the start of MPI to computing.
            time.sleep(1)
            for rank in ranks:
                os.kill(rank, signal.SIGTERM)
            return time.time()
        time.sleep(0.02)
    return None


def check_command(check, arguments, folder, name, words):
    record = folder / f"record-{name}"
    record.mkdir()
    command = [arguments.mpirun, str(RANKS), sys.executable, str(RECORDER), arguments.trireme,
               *map(str, words)]
    launcher = subprocess.Popen(command, env=dict(os.environ, RECORD=str(record)),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        struck = strike(arguments, folder, launcher)
        check(struck is not None, f"{name} ended by itself, or never came so far")
        _, said = launcher.communicate(timeout=MOST_SECONDS)
    finally:
        launcher.kill()
    check(launcher.returncode != 0, f"{name}: mpirun reports success")
    until = time.time() + 5
    while (processes_with(str(folder)) or len(list(record.glob("*.exit"))) < RANKS) and \
            time.time() < until:
        time.sleep(0.05)
    check(not processes_with(str(folder)), f"{name} still runs: {processes_with(str(folder))}")
    for rank in range(RANKS):
        file = record / f"{rank}.exit"
        error = record / f"{rank}.err"
        words_of = error.read_text() if error.exists() else ""
        code = file.read_text().split()[0] if file.exists() else "nothing"
        # mpirun kills those that are left once the first has gone.
        check(code in (str(TERMINATED), str(-signal.SIGKILL)),
              f"{name}: rank {rank} ended with {code}: {words_of}")
        check("defect" not in words_of, f"{name}: rank {rank} says: {words_of}")
    codes = [file.read_text().split()[0] for file in record.glob("*.exit")]
    check(str(TERMINATED) in codes, f"{name}: no rank ended with {TERMINATED}: {codes} {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory(prefix=f"trireme-{uuid.uuid4()}-") as name:
        folder = pathlib.Path(name)
        prepare(arguments, folder)
        for command, words in commands(arguments, folder).items():
            check_command(check, arguments, folder, command, words)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
