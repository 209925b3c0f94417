# SPDX-License-Identifier: Apache-2.0
"""The files that are looked at, by kind."""

import pathlib
import subprocess

CPP_SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".cu", ".cuh"}
DATA_SUFFIXES = {".safetensors", ".json", ".svg", ".xml", ".npy", ".bin", ".idx", ".gz", ".txt"}


class Selection:
    """Paths relative to the root. `named` says whether the user chose them."""

    def __init__(self, root, paths, named):
        self.root = root
        self.paths = paths
        self.named = named

    def cpp(self):
        return [path for path in self.paths if path.suffix in CPP_SUFFIXES]

    def python(self):
        return [path for path in self.paths if self.interpreter(path) == "python"]

    def shell(self):
        return [path for path in self.paths if self.interpreter(path) == "shell"]

    def texts(self):
        """Everything that people write by hand."""
        return [path for path in self.paths
                if path.name == "CMakeLists.txt" or path.suffix not in DATA_SUFFIXES]

    def interpreter(self, path):
        """Of a file that can be started, or of a Python module."""
        if path.suffix == ".py":
            return "python"
        if path.suffix:
            return None
        with open(self.root / path, "rb") as file:
            first = file.readline(80)
        if not first.startswith(b"#!"):
            return None
        if b"python" in first:
            return "python"
        return "shell" if first.rstrip().endswith(b"sh") else None


def select(root, named):
    """All files that git tracks or would track, or those that the user named."""
    if named:
        return Selection(root, [path.relative_to(root) for path in named], True)
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    paths = sorted(pathlib.Path(line) for line in listed.stdout.splitlines())
    return Selection(root, [path for path in paths if (root / path).is_file()], False)
