# SPDX-License-Identifier: Apache-2.0
"""usage: read_tensor_test.py BUILD_FOLDER
docs/examples/read_tensor.py reads every tensor of checkpoints of three layouts, and finds what HDF5
itself finds through the virtual datasets of master.h5. Needs h5py."""

import pathlib
import shutil
import sys

try:
    import h5py
except ImportError:
    sys.exit("h5py is missing: scripts/setup installs python3-h5py")

import commands_test

sys.path.insert(0, str(commands_test.ROOT / "docs/examples"))
import read_tensor  # noqa: E402

# Ranks, and how they share the state.
LAYOUTS = ((1, "--set parallel.tensor=1 --set parallel.pipeline=1"),
           (4, "--set parallel.tensor=2 --set parallel.pipeline=1 --set parallel.zero_level=1"),
           (4, "--set parallel.tensor=1 --set parallel.pipeline=2 --set parallel.zero_level=0"))


def differing(step):
    """Names of tensors that the example reads otherwise than HDF5, and how many were compared."""
    names = []
    with h5py.File(step / "master.h5") as master:
        master.visititems(lambda name, thing: names.append(name) if isinstance(thing, h5py.Dataset) else None)
        wrong = []
        for name in names:
            shape, values = read_tensor.read_tensor(step, name)
            if shape != list(master[name].shape) or values != master[name][:].ravel().tolist():
                wrong.append(name)
    return wrong, len(names)


def main():
    place = commands_test.DocumentedPlace(pathlib.Path(sys.argv[1]).resolve())
    failures = 0
    try:
        place.prepare()
        for number, (ranks, keys) in enumerate(LAYOUTS):
            place.must(f"mpirun -n {ranks} trireme train small.conf --set train.global_batch=8 {keys} --set run.directory=runs/{number}")
            step = max((place.folder / f"runs/{number}/checkpoints").glob("step-*"))
            wrong, count = differing(step)
            print(f"{ranks} ranks {keys}: {count} tensors, {len(wrong)} differ {wrong[:3]}")
            failures += len(wrong) + (count < 30)
    finally:
        shutil.rmtree(place.folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
