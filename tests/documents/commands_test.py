# SPDX-License-Identifier: Apache-2.0
"""Runs every command that README.md and the pages of docs, slurm and perf/results show, on a model of seconds.

usage: commands_test.py BUILD

Each command (blocks.py) runs as it stands, in a folder where `trireme`, RUN and the other names of the
documents mean something small (STAND_INS), or is named in EXCEPTIONS with the reason; an exception
that nothing needs any more fails, too. Names that docs/checkpoint-format.md shows are looked for in
the checkpoint that is made here (checkpoint_names.py).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import blocks  # noqa: E402
import checkpoint_names  # noqa: E402

for folder in ("support", "track"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import mlflow_server  # noqa: E402
from place import ROOT, Place  # noqa: E402

PAGES = [ROOT / "README.md", *(page for folder in ("docs", "slurm", "perf/results")
                               for page in sorted((ROOT / folder).rglob("*.md")))]
# Commands of these pages need one another; the test named runs the page from top to bottom.
RUN_ELSEWHERE = {"docs/first-model.md": "mpi.first_model"}

BUILDS = "builds or installs: it is how this test's program came to be"
TESTS = "starts tests, of which this is one"
LONG = "takes minutes"
CLUSTER = "needs root, starts a Slurm cluster: slurm.cluster does all of it"
PACKAGE = "needs root, installs packages: package.deb does it in a layer of its own"
GPU = "needs a GPU or the archive made for one: package.bundle"
PEER = "needs the other project, from the internet"
BENCH = "a benchmark of the whole machine, minutes: unit.apps runs the like small"
EXCEPTIONS = {
    r"^scripts/(quickstart|setup|build)\b": BUILDS,
    r"^scripts/(test|lint)\b": TESTS,
    r"^cmake ": BUILDS,
    r"^cpack ": PACKAGE,
    r"^dpkg ": PACKAGE,
    r"^srun --help": PACKAGE,
    r"^sudo scripts/cluster ": CLUSTER,
    r"^scripts/bundle\b": LONG,
    r"^tar -xf trireme-": GPU,
    r"/bin/gpu-check\b": GPU,
    r"backend[ =]cuda\b": GPU,
    r"^perf/compare/(pytorch|picotron|fsdp|checkpoint)/": PEER,
    r"perf/compare/(collectives|net_plugin)/run": LONG,
    r"^trireme bench gemm\b(?!.*backend)": BENCH,
    r"^(mpirun .*)?build/perf/bench/": BENCH,
    r"^ctest ": TESTS,
    r"^nsys ": GPU,
    r"^trireme profile\b": "needs a run that goes on: mpi.tracing has one",
}
# Names of the documents, and what they are here.
STAND_INS = [
    (r"configs/quickstart\.conf", "small.conf"),
    (r"configs/muon-quickstart\.conf", "small-muon.conf --set run.directory=runs/muon"),
    (r"\bRUN/checkpoints/step-000001200\b", "{step}"),
    (r"\bRUN\b(?!/)", "runs/by-hand"),
    (r"\bHF_DIR --to runs/by-hand", "HF_DIR --to runs/imported"),
    (r"--bytes \S+", "--bytes 4KiB,256KiB"),
    (r"http://tracking\.example:5000", "{tracking}"),
]
SMALL = """
include = {root}/configs/{name}.conf
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
train.profile = 2..2
"""


def command_of(line):
    """Without the remark behind it."""
    return re.sub(r"\s+# .*$", "", line)


class DocumentedPlace(Place):
    """A folder where the documents' names mean something."""

    def __init__(self, build):
        super().__init__(build / "bin/trireme", pathlib.Path(tempfile.mkdtemp()))
        self.tracking = mlflow_server.MlflowServer().__enter__()
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
        self.environment["PATH"] = f"{wrapped}:{path}"

    def configure(self, steps):
        self.steps = steps
        for name, file in (("quickstart", "small"), ("muon-quickstart", "small-muon")):
            text = SMALL.format(root=ROOT, name=name, folder=self.folder, steps=steps)
            (self.folder / f"{file}.conf").write_text(text)

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
        self.make_tokens()
        self.configure(2)
        self.must("mpirun -n 1 trireme train small.conf --set parallel.tensor=1 "
                  "--set parallel.pipeline=1 --set run.directory=runs/by-hand")
        self.must("trireme checkpoint export runs/by-hand --to HF_DIR")

    def step(self):
        return max((self.folder / "runs/by-hand/checkpoints").glob("step-*"))

    def meant(self, command):
        for pattern, text in STAND_INS:
            command = re.sub(pattern, text.format(step=self.step(), tracking=self.tracking.url), command)
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


class Tally:
    """What was done, and what did not go well."""

    def __init__(self):
        self.used, self.failures, self.done = set(), 0, 0

    def fail(self, text):
        self.failures += 1
        print(f"FAILED  {text}", flush=True)

    def run(self, place, where, line):
        pattern, reason = reason_to_skip(line)
        if reason:
            self.used.add(pattern)
            print(f"not run {where}: {command_of(line)} ({reason})")
            return
        command = place.meant(command_of(line))
        code, text = place.run(command)
        self.done += 1
        if code == 0:
            print(f"ok      {where}: {command}", flush=True)
        else:
            self.fail(f"{where}: {command}\nexit code {code}\n{text}")


def look_at(page, name, place, build, tally):
    read = blocks.read_page(page.read_text())
    for number, text in read.findings:
        tally.fail(f"{name}:{number}: {text}")
    if name in RUN_ELSEWHERE:
        print(f"not run {name}: its {len(read.commands)} commands ({RUN_ELSEWHERE[name]} does)")
        return
    for number, line in read.commands:
        for word in lacking(line, build):
            tally.fail(f"{name}:{number}: there is no {word}, and no target makes it")
        tally.run(place, f"{name}:{number}", line)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tally, place = Tally(), DocumentedPlace(build)
    try:
        place.prepare()
        for finding in checkpoint_names.findings((ROOT / "docs/checkpoint-format.md").read_text(), place.step()):
            tally.fail(f"docs/checkpoint-format.md: {finding}")
        for page in PAGES:
            look_at(page, str(page.relative_to(ROOT)), place, build, tally)
    finally:
        shutil.rmtree(place.folder)
    for pattern in EXCEPTIONS.keys() - tally.used:
        tally.fail(f"nothing shown needs the exception {pattern}; take it out")
    print(f"{tally.done} commands done, {tally.failures} failures")
    return 1 if tally.failures or tally.done < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
