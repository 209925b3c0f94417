# SPDX-License-Identifier: Apache-2.0
"""The line by which a source names its license: the first, or the second after an interpreter's."""

import pathlib

from lint import files

IDENTIFIER = "SPDX-License-Identifier: Apache-2.0"
HASH_SUFFIXES = {".py", ".bash", ".cmake"}
# Tools read these as data, wherever they lie.
DATA_FOLDERS = [pathlib.PurePath("tests/fuzz/corpus")]


def line_of(path, lines):
    """The line that the file needs; none for data, documents and configuration."""
    if any(folder in pathlib.PurePath(path).parents for folder in DATA_FOLDERS):
        return None
    # What CMake completes is of the kind that it becomes.
    suffix = pathlib.PurePath(path.stem).suffix if path.suffix == ".in" else path.suffix
    if suffix in files.CPP_SUFFIXES:
        return f"// {IDENTIFIER}"
    if suffix in HASH_SUFFIXES or path.name == "CMakeLists.txt" or lines[:1] and lines[0].startswith("#!"):
        return f"# {IDENTIFIER}"
    return None


def place_of(lines):
    return 1 if lines and lines[0].startswith("#!") else 0


def names_license(path, lines):
    """A rule of rules.py."""
    line, place = line_of(path, lines), place_of(lines)
    if line and lines[place:place + 1] != [line]:
        yield place + 1, f"the license is missing; put '{line}' here (scripts/lint --add-license does)"


def count(lines):
    """Lines that name the license: they make no file too long."""
    return sum(line.endswith(IDENTIFIER) for line in lines[:2])


def with_license(path, text):
    """The text with its line, as it was where it has or needs none."""
    lines = text.splitlines()
    if not list(names_license(path, lines)):
        return text
    parts = text.splitlines(keepends=True)
    parts.insert(place_of(lines), line_of(path, lines) + "\n")
    return "".join(parts)


def add(root, selection):
    """Writes the line into each file that needs it; their paths."""
    changed = []
    for path in selection.texts():
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        complete = with_license(path, text)
        if complete != text:
            (root / path).write_text(complete, encoding="utf-8")
            changed.append(path)
    return changed
