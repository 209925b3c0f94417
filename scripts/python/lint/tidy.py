# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the compile database, in parallel, remembering which files were clean."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# Debian 12's default, 14, cannot parse std::source_location: docs/decisions/0003
PROGRAM = "clang-tidy-19"
BUILD = pathlib.Path("build-tidy")
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^(/[^:]+):(\d+):(\d+): (warning|error): (.*)$")


class Includes:
    """The headers of this project that a file includes, directly or not."""

    def __init__(self, root):
        self.root = root
        self.direct = {}

    def closure(self, path, folders):
        seen, todo = set(), [path]
        while todo:
            current = todo.pop()
            if current in seen:
                continue
            seen.add(current)
            todo.extend(self.includes_of(current, folders))
        return seen

    def includes_of(self, path, folders):
        if path not in self.direct:
            names = [name.decode() for name in INCLUDE.findall(path.read_bytes())]
            found = [next((folder / name for folder in [path.parent, *folders]
                           if (folder / name).is_file()), None) for name in names]
            self.direct[path] = [item.resolve() for item in found if item]
        return self.direct[path]


class Unit:
    """One entry of the compile database."""

    def __init__(self, entry):
        self.path = pathlib.Path(entry["file"])
        # How to start the compiler's cache says nothing about the file.
        self.command = re.sub(r"^.*?\S*/ccache ", "", entry["command"])
        self.folders = [pathlib.Path(name) for name in re.findall(r"-I(\S+)", self.command)]

    def rules(self, root):
        """What .clang-tidy says of this file: that of each folder above it."""
        files = [folder / ".clang-tidy" for folder in self.path.parents
                 if folder == root or root in folder.parents]
        return b"".join(file.read_bytes() for file in files if file.is_file())

    def key(self, root, includes, common):
        digest = hashlib.sha256(common + self.rules(root) + self.command.encode())
        for path in sorted(includes.closure(self.path, self.folders)):
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


def configure(root):
    result = subprocess.run(["cmake", "--preset", "tidy"], cwd=root, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"lint: tidy: cmake --preset tidy failed\n{result.stdout}")


def units_of(root, selection):
    """One unit a file; of a file that is compiled twice, the first. nvcc's files are not clang's."""
    entries = json.loads((root / BUILD / "compile_commands.json").read_text())
    wanted = {root / path for path in selection.paths if path.suffix != ".cu"}
    units = {}
    for entry in entries:
        unit = Unit(entry)
        if unit.path in wanted:
            units.setdefault(unit.path, unit)
    return list(units.values())


# What .clang-tidy leaves out for its time, not for its sense.
DEEP = ("clang-analyzer-*,bugprone-exception-escape,bugprone-inc-dec-in-conditions,"
        "bugprone-infinite-loop,bugprone-reserved-identifier,bugprone-standalone-empty,"
        "bugprone-stringview-nullptr,bugprone-suspicious-semicolon,"
        "bugprone-suspicious-string-compare,bugprone-unused-raii,"
        "performance-unnecessary-value-param")


def command_for(root, deep):
    # Some files are compiled with g++'s own warning options; g++'s library uses what it deprecates.
    extra = ["-Wno-unknown-warning-option", "-Wno-deprecated-declarations",
             f"-isystem{openmp_header(root)}"]
    command = [PROGRAM, "--quiet", f"-p={root / BUILD}"]
    command += [f"--extra-arg={argument}" for argument in extra]
    return command + ([f"--checks={DEEP}"] if deep else [])


def openmp_header(root):
    """A folder with g++'s omp.h alone: clang has none, and the headers beside it are not for it.

    clang's attribute malloc takes no name of the function that frees."""
    folder = root / BUILD / "openmp"
    folder.mkdir(exist_ok=True)
    found = subprocess.run(["g++", "-print-file-name=include/omp.h"], stdout=subprocess.PIPE,
                           text=True, check=True)
    text = pathlib.Path(found.stdout.strip()).read_text()
    (folder / "omp.h").write_text(re.sub(r"__malloc__ \(omp_free\),\s*", "", text))
    return folder


def look_at(root, command, unit):
    """Lines "file:line:column: message [check]" of one unit, notes left out."""
    result = subprocess.run([*command, str(unit.path)], cwd=root, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    found = []
    for line in result.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            path = os.path.relpath(match[1], root)
            found.append(f"{path}:{match[2]}:{match[3]}: {match[5]}")
    if result.returncode != 0 and not found:
        found.append(f"{os.path.relpath(unit.path, root)}: clang-tidy ended with "
                     f"{result.returncode}: {result.stderr.strip()[-500:]}")
    return found


def progress(done, total, begin):
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        seconds = time.monotonic() - begin
        print(f"\rlint: tidy: {done} of {total} files, {seconds:.0f} s", end=end,
              file=sys.stderr, flush=True)


def look_at_all(root, command, units, remember):
    """All findings; a header's finding comes once, however many files include it."""
    found = set()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(look_at, root, command, unit): unit for unit in units}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), start=1):
            lines = job.result()
            found.update(lines)
            if not lines:
                remember(jobs[job])
            progress(done, len(units), begin)
    return sorted(found)


def check(root, selection, options):
    configure(root)
    command = command_for(root, options.deep)
    version = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, check=True)
    common = version.stdout + " ".join(command).encode()
    store = root / BUILD / "lint"
    store.mkdir(exist_ok=True)
    includes = Includes(root)
    units = units_of(root, selection)
    keys = {unit.path: unit.key(root, includes, common) for unit in units}
    new = [unit for unit in units if not (store / keys[unit.path]).exists()]
    # The largest first, so that no core waits for one at the end.
    new.sort(key=lambda unit: len(includes.closure(unit.path, unit.folders)), reverse=True)
    print(f"lint: tidy: {len(units) - len(new)} of {len(units)} files known to be clean",
          file=sys.stderr, flush=True)
    found = look_at_all(root, command, new, lambda unit: (store / keys[unit.path]).touch())
    if not selection.named and not options.deep:
        forget_others(store, set(keys.values()))
    return found


def forget_others(store, known):
    """What was clean a month ago and is something else today only takes room."""
    for path in store.iterdir():
        if path.name not in known and time.time() - path.stat().st_mtime > 30 * 86400:
            path.unlink()
