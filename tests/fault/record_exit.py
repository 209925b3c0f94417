# SPDX-License-Identifier: Apache-2.0
"""Runs a rank and records how it ends, even when the launcher kills all that it started.

usage: RECORD=FOLDER mpirun -n N record_exit.py PROGRAM ARGUMENT...
Writes FOLDER/RANK.exit ("CODE TIME", CODE negative for a signal) and FOLDER/RANK.err.

The launcher signals the process group of what it started. The program is in that group; the
process that waits for it is in another one.
"""

import os
import pathlib
import sys
import time


def run_program(group, errors):
    os.setpgid(0, group)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
    os.execv(sys.argv[1], sys.argv[1:])


def wait_and_record(folder, rank, group):
    os.setpgid(0, 0)
    program = os.fork()
    if program == 0:
        run_program(group, folder / f"{rank}.err")
    _, status = os.waitpid(program, 0)
    code = os.waitstatus_to_exitcode(status)
    partial = folder / f"{rank}.partial"
    partial.write_text(f"{code} {time.time()}")
    partial.rename(folder / f"{rank}.exit")
    os._exit(code if code >= 0 else 128 - code)


def main():
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    group = os.getpgid(0)
    recorder = os.fork()
    if recorder == 0:
        wait_and_record(pathlib.Path(os.environ["RECORD"]), rank, group)
    _, status = os.waitpid(recorder, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
