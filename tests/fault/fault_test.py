# SPDX-License-Identifier: Apache-2.0
"""Starts ranks of which one fails, and checks how the others end: each with the right exit code
and error within the deadline + 5 s, with nothing left behind.

usage: fault_test.py --mpirun SCRIPT --program FILE --backend shared|mpi --fault NAME
       [--ranks NUMBER] [--victim RANK]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

RECORDER = pathlib.Path(__file__).with_name("record_exit.py")
DEADLINE_SECONDS = 3.0
GRACE_SECONDS = 5.0
DONE, PEER, CHECKPOINT, INTERNAL = 0, 5, 6, 70

# What each fault must look like: exit code of the others, of the victim (None: a signal), words
# that every other rank says, whether the deadline passes before it is noticed.
EXPECTED = {
    "throw-at-start": (PEER, INTERNAL, ["rank {victim}", "no such luck"], False),
    "throw": (PEER, CHECKPOINT, ["rank {victim}", "no space left", "all_reduce"], False),
    # Its scope does not end: the others know before.
    "throw-held-up": (PEER, CHECKPOINT, ["rank {victim}", "no space left", "all_reduce"], False),
    "agreed": (CHECKPOINT, CHECKPOINT, ["rank {victim}", "the disk is full"], False),
    # Bytes that are no UTF-8 are a failure like any other.
    "throw-bytes": (PEER, CHECKPOINT, ["rank {victim}", "cannot read", "all_reduce"], False),
    "stop-at-start": (PEER, None, ["in MPI_Init", "comm.start_timeout",
                                   "rank {victim} (process ", "is stopped by a signal"], True),
    "stop-at-end": (DONE, None, ["in MPI_Finalize", "comm.start_timeout",
                                 "rank {victim} (process ", "is stopped by a signal"], True),
    "kill": (PEER, None, ["rank {victim}", "died", "all_reduce"], False),
    "stop": (PEER, None, ["rank {victim}", "stopped by a signal", "all_reduce", "number 20"],
             True),
    "late": (PEER, None, ["rank {victim}", "all_reduce", "number 20"], True),
}

# All ranks throw the same: rank 0 speaks for them.
TOLD_ONCE = {"agreed"}
# One rank speaks for its node, and the launcher may end the others before they do.
TOLD_BY_ONE = {"stop-at-start", "stop-at-end"}


class Checks:
    def __init__(self):
        self.failures = 0

    def __call__(self, condition, text):
        if not condition:
            self.failures += 1
            print(f"FAILED: {text}")


def processes_with(token):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if token in (entry / "cmdline").read_text(errors="replace"):
                found.append(entry.name)
        except OSError:
            pass
    return found


def run(arguments, record):
    environment = dict(os.environ, RECORD=str(record))
    command = [arguments.mpirun, str(arguments.ranks), sys.executable, str(RECORDER),
               arguments.program, arguments.fault, str(arguments.victim), arguments.backend,
               str(DEADLINE_SECONDS), str(record)]
    begin = time.time()
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=45, check=False)
    return begin, result


def check_rank(check, arguments, record, rank, fault_time):
    others_code, victim_code, words, waits = EXPECTED[arguments.fault]
    said = (record / f"{rank}.err").read_text(errors="replace")
    file = record / f"{rank}.exit"
    victim = arguments.victim
    wanted = victim_code if rank == victim else others_code
    if wanted is None or (arguments.fault in TOLD_BY_ONE and rank != 0):
        return
    until = time.time() + 5
    while not file.exists() and time.time() < until:
        time.sleep(0.02)
    check(file.exists(), f"rank {rank} left no exit code; it said: {said}")
    if not file.exists():
        return
    code, ended = file.read_text().split()
    check(int(code) == wanted, f"rank {rank} ended with {code} instead of {wanted}: {said}")
    limit = (DEADLINE_SECONDS if waits else 0) + GRACE_SECONDS
    check(float(ended) - fault_time < limit,
          f"rank {rank} ended {float(ended) - fault_time:.1f} s after the fault")
    if arguments.fault in TOLD_ONCE:
        # A machine with fewer cores than ranks is another matter.
        lines = [line for line in said.splitlines() if " warning " not in line]
        check(len(lines) == (1 if rank == 0 else 0),
              f"rank {rank} says what rank 0 says for all: {said}")
        if rank != 0:
            return
    if rank != victim:
        for word in (each.format(victim=victim) for each in words):
            check(word in said, f"rank {rank} does not say '{word}' but: {said}")
    last = said.strip().splitlines()[-1] if said.strip() else ""
    check(last.startswith("trireme: failed with exit code")
          and f"first failing rank {victim}" in last,
          f"the last line of rank {rank} is: {last}")


def check_report(check, arguments, record):
    file = record / "failure.json"
    if arguments.fault in TOLD_BY_ONE:
        # MPI has not told where the run is, or the run is over.
        check(not file.exists(), "failure.json of a run that has not begun, or is done")
        return
    check(file.exists(), "no failure.json")
    if file.exists():
        report = json.loads(file.read_text())
        check(report["first_failing_rank"] == arguments.victim,
              f"failure.json names another rank: {report}")
        code = EXPECTED[arguments.fault][1]
        check(code in (None, report["exit_code"]), f"failure.json has another code: {report}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpirun", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--fault", required=True, choices=EXPECTED)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--victim", type=int, default=1)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory(prefix=f"trireme-{uuid.uuid4()}-") as folder:
        record = pathlib.Path(folder)
        begin, result = run(arguments, record)
        ended = time.time()
        check(result.returncode != 0, "mpirun reports success")
        fault_time = float((record / "fault.time").read_text())
        for rank in range(arguments.ranks):
            check_rank(check, arguments, record, rank, fault_time)
        check_report(check, arguments, record)
        until = time.time() + 5
        while processes_with(folder) and time.time() < until:
            time.sleep(0.05)
        check(not processes_with(folder), f"still running: {processes_with(folder)}")
        print(f"{arguments.fault} over {arguments.backend}: mpirun ended with {result.returncode} "
              f"after {ended - begin:.1f} s, {ended - fault_time:.1f} s after the fault")
        if check.failures:
            print(result.stderr)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
