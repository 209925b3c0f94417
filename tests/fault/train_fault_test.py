# SPDX-License-Identifier: Apache-2.0
"""`trireme train` on four ranks (tensor 2 x pipeline 2) of which one fails: how the others end,
what failure.json says, and that nothing is left behind.

usage: train_fault_test.py --mpirun SCRIPT --trireme FILE --config FILE --fault NAME
"""

import argparse
import collections
import html
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid

from fault_test import CHECKPOINT, GRACE_SECONDS, PEER, RECORDER, Checks, processes_with

RANKS = 4
DEADLINE_SECONDS = 3.0
STEPS_BEFORE_FAULT = 5

# The rank that fails, the signal that it gets in the middle of a step (none: it fails at start-up
# by itself), words that every other rank says, whether the deadline passes before the fault is
# noticed.
Fault = collections.namedtuple("Fault", "victim number words waits")
FAULTS = {
    "throw-at-start": Fault(0, None, ["rank 0", "versions.json"], False),
    "kill": Fault(2, signal.SIGKILL, ["rank 2", "died"], False),
    "stop": Fault(2, signal.SIGSTOP, ["rank 2", "stopped by a signal"], True),
}


def write_tokens(prefix, vocabulary=512, documents=40, length=400):
    """A token file in Megatron's format; what is in it matters to nobody here."""
    ids = [(document * 31 + position * 7) % vocabulary
           for document in range(documents) for position in range(length)]
    prefix.with_suffix(".bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1)
    index += struct.pack(f"<{documents}i", *[length] * documents)
    index += struct.pack(f"<{documents}q", *[2 * length * i for i in range(documents)])
    index += struct.pack(f"<{documents + 1}q", *range(documents + 1))
    prefix.with_suffix(".idx").write_bytes(index)


def start(arguments, folder):
    prefix, run = folder / "tokens", folder / "run"
    write_tokens(prefix)
    run.mkdir()
    if arguments.fault == "throw-at-start":
        # Where a file of rank 0 alone should be lies something that no file can replace.
        (run / "versions.json").mkdir()
    settings = {"data.train": prefix, "run.directory": run, "train.steps": 100000000,
                "train.sequence_length": 64, "parallel.tensor": 2, "parallel.pipeline": 2,
                "comm.timeout": f"{DEADLINE_SECONDS}s"}
    command = [arguments.mpirun, str(RANKS), sys.executable, str(RECORDER), arguments.trireme,
               "train", arguments.config]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return subprocess.Popen(command, env=dict(os.environ, RECORD=str(folder)),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def steps_done(folder):
    file = folder / "run" / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return sum('"kind":"train"' in line for line in lines)


def process_of_rank(arguments, rank):
    """The trireme of a rank that this test started, told by its environment."""
    mark = f"OMPI_COMM_WORLD_RANK={rank}".encode()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry.name.isdigit() and os.readlink(entry / "exe") == arguments.trireme
                    and mark in (entry / "environ").read_bytes().split(b"\0")
                    and arguments.folder in (entry / "cmdline").read_text(errors="replace")):
                return int(entry.name)
        except OSError:
            continue
    raise RuntimeError(f"rank {rank} is not running")


def strike(arguments, folder, mpirun):
    """The time of the fault: once training is under way, or the end of a victim that fails at
    start-up by itself."""
    victim, number, _, _ = FAULTS[arguments.fault]
    end_of_victim = folder / f"{victim}.exit"
    until = time.time() + 40
    while time.time() < until:
        if number is None and end_of_victim.exists():
            return float(end_of_victim.read_text().split()[1])
        if number is not None and steps_done(folder) >= STEPS_BEFORE_FAULT:
            os.kill(process_of_rank(arguments, victim), number)
            return time.time()
        if mpirun.poll() is not None:
            # What the launcher outlived may be a moment late with its record.
            until = min(until, time.time() + 5)
        time.sleep(0.01)
    said = [file.read_text()[-2000:] for file in sorted(folder.glob("*.err"))]
    raise RuntimeError("training did not come so far: " + "\n".join(said))


def check_ranks(check, arguments, folder, fault_time):
    victim, number, words, waits = FAULTS[arguments.fault]
    limit = (DEADLINE_SECONDS if waits else 0) + GRACE_SECONDS
    for rank in range(RANKS):
        said = (folder / f"{rank}.err").read_text()
        if rank == victim and number is not None:
            continue
        wanted = CHECKPOINT if rank == victim else PEER
        file = folder / f"{rank}.exit"
        check(file.exists(), f"rank {rank} left no exit code; it said: {said}")
        if not file.exists():
            continue
        code, ended = file.read_text().split()
        check(int(code) == wanted, f"rank {rank} ended with {code} instead of {wanted}: {said}")
        check(float(ended) - fault_time < limit,
              f"rank {rank} ended {float(ended) - fault_time:.1f} s after the fault")
        for word in words if rank != victim else []:
            check(word in said, f"rank {rank} does not say '{word}' but: {said}")
        last = said.strip().splitlines()[-1] if said.strip() else ""
        check(last.startswith("trireme: failed with exit code")
              and f"first failing rank {victim}" in last, f"the last line of rank {rank}: {last}")


def check_report(check, arguments, folder):
    file = folder / "run" / "failure.json"
    check(file.exists(), "no failure.json")
    if not file.exists():
        return
    victim, number, words, _ = FAULTS[arguments.fault]
    report = json.loads(file.read_text())
    check(report["first_failing_rank"] == victim, f"another rank is named: {report}")
    check(report["host"] == socket.gethostname(), f"another host is named: {report}")
    if number is None:
        check(words[1] in report["cause"], f"another cause is named: {report}")
        return
    collective = report["collective"]
    check(collective is not None, f"no collective is named: {report}")
    if collective is not None:
        check(bool(collective["operation"]) and bool(collective["group"])
              and collective["number"] >= 1, f"the collective is not told: {report}")
        check(victim in collective["missing_ranks"], f"the victim is not missing: {report}")


def check_postmortem(check, arguments, folder):
    """What `trireme why` makes of the run that the fault left behind."""
    victim, number, words, _ = FAULTS[arguments.fault]
    answer = subprocess.run([arguments.trireme, "why", folder / "run", "--no-slurm", "--json"],
                            capture_output=True, text=True)
    check(answer.returncode == 0, f"trireme why ends with {answer.returncode}: {answer.stderr}")
    if answer.returncode != 0:
        return
    postmortem = json.loads(answer.stdout)
    check(postmortem["ending"] == "failed", f"the postmortem's ending: {postmortem}")
    check(postmortem["cause"]["rank"] == victim, f"the postmortem names another rank: {postmortem}")
    check(bool(postmortem["advice"]), f"the postmortem has no advice: {postmortem}")
    check_page(check, arguments, folder)
    if number is None:
        return
    others = {event["who"].split(" on ")[0] for event in postmortem["events"]}
    wanted = {f"rank {rank}" for rank in range(RANKS) if rank != victim}
    check(wanted <= others, f"the postmortem is silent of {wanted - others}: {postmortem}")


def check_page(check, arguments, folder):
    """The page of the failed run begins with what `trireme why` says."""
    page = folder / "page.html"
    made = subprocess.run([arguments.trireme, "-q", "report", folder / "run", "--out", page],
                          capture_output=True, text=True)
    check(made.returncode == 0, f"trireme report ends with {made.returncode}: {made.stderr}")
    if made.returncode != 0:
        return
    said = subprocess.run([arguments.trireme, "why", folder / "run", "--no-slurm"],
                          capture_output=True, text=True).stdout
    first = page.read_text().split("<main>")[1].split("</section>")[0]
    lines = [html.unescape(re.sub("<[^>]*>", "", line))
             for line in re.findall("<span>(.*?)</span>", first)]
    check('id="cause"' in first and lines == said.splitlines(),
          f"the page begins with: {first}\ntrireme why says: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--mpirun", "--trireme", "--config"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--fault", required=True, choices=FAULTS)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory(prefix=f"trireme-{uuid.uuid4()}-") as name:
        folder = pathlib.Path(name)
        arguments.folder = name
        mpirun = start(arguments, folder)
        try:
            fault_time = strike(arguments, folder, mpirun)
            mpirun.wait(timeout=30)
        finally:
            mpirun.kill()
        said = mpirun.stderr.read()
        ended = time.time()
        check(mpirun.returncode != 0, "mpirun reports success")
        until = time.time() + 5
        while processes_with(name) and time.time() < until:
            time.sleep(0.05)
        check(not processes_with(name), f"still running: {processes_with(name)}")
        check_ranks(check, arguments, folder, fault_time)
        check_report(check, arguments, folder)
        check_postmortem(check, arguments, folder)
        print(f"{arguments.fault}: mpirun ended {ended - fault_time:.1f} s after the fault")
        if check.failures:
            print(said)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
