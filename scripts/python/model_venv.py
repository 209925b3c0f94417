# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with transformers, for scripts that compare Trireme's models with it.

enter() runs the calling script again inside .cache/models-venv, made when missing.
"""
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "safetensors", "numpy")


def enter(transformers="transformers"):
    """`transformers`: a requirement as pip has it, "transformers<5" for an older line."""
    name = "models-venv" if transformers == "transformers" else "models-venv-older"
    folder = ROOT / ".cache" / name
    if pathlib.Path(sys.prefix).resolve() == folder.resolve():
        return
    complete = folder / "complete"
    if not complete.exists():
        print(f"making {folder} (a few GB from PyPI, once)", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", transformers, *PACKAGES],
                       check=True)
        complete.touch()
    python = folder / "bin/python"
    os.execv(python, [str(python), *sys.argv])
