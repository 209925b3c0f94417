# SPDX-License-Identifier: Apache-2.0
"""Stages with time limits: each ends as PASS, FAIL or SKIP with a reason, and the next one starts."""

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import time

PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"
SKIP_MARK = "TRIREME_SKIP:"
# mpirun gives its ranks a terminal, on which programs write in colours.
COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Skipped(Exception):
    """The stage cannot run here; the text says why."""


class Failed(Exception):
    """What the stage looked at is wrong; the text says what."""


@dataclasses.dataclass
class Outcome:
    stage: str
    state: str
    reason: str
    seconds: float


@dataclasses.dataclass
class Result:
    """How a command ended. `code` is None where it was killed because its time was up."""
    code: int | None
    text: str
    seconds: float

    def tail(self, lines=12):
        return "\n".join(self.text.strip().splitlines()[-lines:])


def living(session):
    """The processes of a session; those that only wait for their parents hold nothing any more."""
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if os.getsid(int(entry)) != session:
                continue
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                if stat.read().rpartition(")")[2].split()[0] not in "ZX":
                    yield int(entry)


def end_session(session, patience=10):
    """Kills whatever belongs to a session (mpirun gives each rank a process group of its own) and
    waits until it is gone: a GPU has its memory back no sooner."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = list(living(session))
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def run(command, seconds, folder, environment=None, until=None):
    """Runs a command and all that it starts for so many seconds at most, or until `until()` holds."""
    begin = time.monotonic()
    # A file, not a pipe: what was said before the end is there, whoever still holds it open.
    log = folder / f"{len(list(folder.iterdir())):03d}-{os.path.basename(command[0])}.log"
    with open(log, "wb") as out:
        child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                 env={**os.environ, **(environment or {})})
        code, seen_enough = None, False
        while code is None and not seen_enough and time.monotonic() - begin < seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(timeout=0.05)
            seen_enough = until is not None and until()
        if code is None:
            end_session(child.pid)
            child.wait()
            code = 0 if seen_enough else None
    text = COLOUR.sub("", log.read_text(errors="replace"))
    return Result(code, text, time.monotonic() - begin)


def must_succeed(result, limit):
    """The result of a command that must end with 0 in time and not have skipped its work."""
    for line in result.text.splitlines():
        if SKIP_MARK in line:
            raise Skipped(line.split(SKIP_MARK, 1)[1].strip())
    if result.code is None:
        raise Failed(f"still ran after {limit:.0f} s:\n{result.tail()}")
    if result.code != 0:
        raise Failed(f"exit code {result.code}:\n{result.tail()}")
    return result


class Session:
    """Runs stages one after the other until the time of all of them is up."""

    def __init__(self, seconds, say=print, after_each=lambda: None):
        """`after_each` is called after every stage, to keep what has been found so far."""
        self.deadline = time.monotonic() + seconds
        self.say, self.after_each = say, after_each
        self.outcomes = []

    def left(self):
        return self.deadline - time.monotonic()

    def stage(self, name, limit, work):
        """`work(seconds)` returns a line about what it found, or raises. Returns whether it passed."""
        begin = time.monotonic()
        limit = min(limit, self.left())
        try:
            if limit < 1:
                raise Skipped("no time is left")
            state, reason = PASS, work(limit) or ""
        except Skipped as why:
            state, reason = SKIP, str(why)
        except Failed as why:
            state, reason = FAIL, str(why)
        except (OSError, ValueError, KeyError, IndexError) as error:
            # A program that is gone, or that writes something else than it did: a finding, too.
            state, reason = FAIL, f"{type(error).__name__}: {error}"
        outcome = Outcome(name, state, reason, time.monotonic() - begin)
        self.outcomes.append(outcome)
        first, *rest = (reason or "-").splitlines()
        self.say(f"{state}  {name:<22} {outcome.seconds:6.1f} s  {first}")
        for line in rest:
            self.say(f"      {line}")
        self.after_each()
        return state == PASS

    def summary(self):
        count = {state: sum(outcome.state == state for outcome in self.outcomes)
                 for state in (PASS, FAIL, SKIP)}
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        return (f"{count[PASS]} passed, {count[FAIL]} failed, {count[SKIP]} skipped "
                f"in {seconds:.0f} s")

    def exit_code(self):
        """1: something failed. 77: nothing failed, but what is asked for was not shown."""
        states = [outcome.state for outcome in self.outcomes]
        if FAIL in states:
            return 1
        return 77 if SKIP in states else 0
