"""Runs every command that README.md and docs show, on a model of seconds.

usage: commands_test.py BUILD

A command is a line of a fenced block, without a language or of a shell, that begins with a program. Each
runs as it stands, in a folder where `trireme`, RUN and the other names of the documents mean
something small (STAND_INS), or is named in EXCEPTIONS with the reason; an exception that nothing
needs any more fails, too.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# That page is a story, whose commands need one another: mpi.first_model tells it whole.
STORY = ROOT / "docs/first-model.md"
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page != STORY),
         *sorted((ROOT / "slurm").glob("*.md"))]
PROGRAMS = re.compile(
    r"^(?:[A-Z_]+=\S+ )*(?:\$ )?(?:sudo )?"
    r"(?:trireme|mpirun|srun|sbatch|salloc|scontrol|h5dump|python3|cmake|cpack|ctest|dpkg|tar|git|man|"
    r"cp|cd|scripts/\S+|build/\S+|perf/\S+|tests/\S+|/tmp/\S+|trireme-[0-9.]+-x86_64/\S+)(?: |$)")
# A line of a block that begins so is a table or an answer, whatever word it begins with.
NO_COMMAND = re.compile("[─►│▼]")

BUILDS = "builds or installs: it is how this test's program came to be"
TESTS = "starts tests, of which this is one"
LONG = "takes minutes"
CLUSTER = "starts a cluster: slurm.cluster does all of it"
PACKAGE = "installs packages: package.deb does it in a layer of its own"
CARD = "needs a card or the archive made for one: package.bundle"
PEER = "needs the other project, from the network"
BENCH = "a benchmark of the whole machine: unit.apps runs the like small"
EXCEPTIONS = {
    r"^scripts/(quickstart|setup|build)\b": BUILDS,
    r"^scripts/(test|lint)\b": TESTS,
    r"^cmake ": BUILDS,
    r"^cpack ": PACKAGE,
    r"^dpkg ": PACKAGE,
    r"^srun --help": PACKAGE,
    r"^\$ sudo scripts/cluster ": CLUSTER,
    r"^scripts/bundle\b": LONG,
    r"^tar ": CARD,
    r"gpu-check\b": CARD,
    r"cuda": CARD,
    r"^perf/compare/(pytorch|picotron)/": PEER,
    r"perf/compare/(collectives|net_plugin)/run": LONG,
    r"bench gemm": BENCH,
    r"^build/perf/bench/": BENCH,
    r"^ctest ": TESTS,
}
# Names of the documents, and what they are here.
STAND_INS = [
    (r"configs/quickstart\.conf", "small.conf"),
    (r"\bRUN/checkpoints/step-000001200\b", "{step}"),
    (r"\bRUN\b(?!/)", "runs/by-hand"),
    (r"\bHF_DIR --to runs/by-hand", "HF_DIR --to runs/imported"),
    (r"--bytes \S+", "--bytes 4KiB,256KiB"),
]
SMALL = """
include = {root}/configs/quickstart.conf
model.vocab_size = 512
model.hidden_size = 32
model.intermediate_size = 64
model.max_position_embeddings = 256
train.steps = {steps}
optimizer.warmup_steps = 1
train.sequence_length = 32
train.global_batch = 6
train.eval_every = 0
data.train = {folder}/tokens
data.validation =
data.tokenizer = {folder}/tokenizer.json
checkpoint.every_steps = 2
"""


def shown_commands():
    """Page, line number and text of every command that is shown."""
    for page in PAGES:
        fenced, language = False, ""
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.startswith("```"):
                fenced, language = not fenced, line[3:].strip()
            elif fenced and language in ("", "sh", "bash") and PROGRAMS.match(line) and not NO_COMMAND.search(line):
                yield page, number, line


def command_of(line):
    """Without the remark behind it, which stands after two blanks or `#`."""
    return re.sub(r"( {3,}| +# ).*$", "", line).removeprefix("$ ")


class Place:
    """A folder where the documents' names mean something."""

    def __init__(self, build):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        for name in ("build", "configs", "docs", "scripts", "tests"):
            (self.folder / name).symlink_to(build if name == "build" else ROOT / name)
        programs = self.folder / "programs"
        wrapped = self.folder / "wrapped"
        for one in (programs, wrapped):
            one.mkdir()
        (programs / "trireme").symlink_to(build / "bin/trireme")
        path = f"{programs}:{os.environ['PATH']}"
        mpirun = wrapped / "mpirun"
        # Tests have more ranks than cores, and may be root.
        mpirun.write_text(f'#!/bin/bash\nPATH={path}\n[[ $1 == -n ]] || exit 9\n'
                          f'exec {ROOT}/tests/support/mpirun "$2" "${{@:3}}"\n')
        mpirun.chmod(0o755)
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{wrapped}:{path}"}

    def configure(self, steps):
        self.steps = steps
        text = SMALL.format(root=ROOT, folder=self.folder, steps=steps)
        (self.folder / "small.conf").write_text(text)

    def run(self, command):
        """Exit code and what was printed."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                              timeout=120, check=False)
        return done.returncode, done.stdout

    def must(self, command):
        code, text = self.run(command)
        if code != 0:
            sys.exit(f"{command}: exit code {code}\n{text}")

    def prepare(self):
        self.must("trireme tokenizer train --input docs/*.md --vocab-size 512 --out tokenizer.json")
        self.must("trireme data prepare --input docs/*.md --tokenizer tokenizer.json --out tokens")
        self.configure(2)
        self.must("mpirun -n 1 trireme train small.conf --set parallel.tensor=1 "
                  "--set parallel.pipeline=1 --set run.directory=runs/by-hand")
        self.must("trireme checkpoint export runs/by-hand --to HF_DIR")

    def meant(self, command):
        for pattern, text in STAND_INS:
            step = max((self.folder / "runs/by-hand/checkpoints").glob("step-*"))
            command = re.sub(pattern, text.format(step=step), command)
        if "export" in command:
            shutil.rmtree(self.folder / "HF_DIR")
        if " train " in command:
            # Each training goes on where the one before has ended.
            self.configure(self.steps + 2)
        return command


def lacking(line, build):
    """Programs of this repository that the line names and that nothing makes."""
    words = re.findall(r"(?<!\S)(?:scripts|perf|tests|build)/[\w./@-]+", command_of(line))
    made = (build / "build.ninja").read_text() if any(word.startswith("build/") for word in words) else ""
    return [word for word in words if not (ROOT / word).exists()
            and not (word.startswith("build/") and word.removeprefix("build/") in made)
            and not word.endswith((".tar.xz", "CPackConfig.cmake"))]


def reason_to_skip(command):
    for pattern, reason in EXCEPTIONS.items():
        if re.search(pattern, command):
            return pattern, reason
    for program in (word for word in ("h5dump", "h5py") if word in command):
        found = (shutil.which(program) if program == "h5dump" else
                 subprocess.run(["python3", "-c", "import h5py"], capture_output=True, check=False).returncode == 0)
        if not found:
            return None, f"no {program} on this machine"
    return None, None


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    place = Place(build)
    used, failures, done = set(), 0, 0
    try:
        place.prepare()
        for page, number, line in shown_commands():
            where = f"{page.relative_to(ROOT)}:{number}"
            for word in lacking(line, build):
                failures += 1
                print(f"FAILED  {where}: there is no {word}, and no target makes it")
            pattern, reason = reason_to_skip(line)
            if reason:
                used.add(pattern)
                print(f"not run {where}: {command_of(line)} ({reason})")
                continue
            command = place.meant(command_of(line))
            code, text = place.run(command)
            done += 1
            print(f"{'ok     ' if code == 0 else 'FAILED '} {where}: {command}", flush=True)
            if code != 0:
                failures += 1
                print(f"exit code {code}\n{text}")
    finally:
        shutil.rmtree(place.folder)
    for pattern in EXCEPTIONS.keys() - used:
        failures += 1
        print(f"FAILED  nothing shown needs the exception {pattern}; take it out")
    print(f"{done} commands done, {failures} failures")
    return 1 if failures or done < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
