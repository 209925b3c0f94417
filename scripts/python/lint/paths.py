# SPDX-License-Identifier: Apache-2.0
"""The paths that documents name in backticks are there."""

import itertools
import pathlib
import re

from lint import sizes

SPAN = re.compile(r"`([^`]+)`")
BLOCK = re.compile(r"^\s*```")
# A path, and the lines of it that are meant.
PATH = re.compile(r"([\w./*{},<>+-]*\w[\w./*{},<>+-]*?)(?::\d[\d,-]*)?")
# NAME and <name> stand for any.
ANY = re.compile(r"<[^>]*>|(?<![A-Za-z])(?!README)[A-Z]{2,}(?![A-Za-z])|\*")
CHOICE = re.compile(r"\{([^{}]*)\}")
SUFFIXES = (sizes.SOURCES - {""}) | {".md", ".toml"}
# A page may say where paths are that begin with the folder of a room.
UNDER = re.compile(r"without `src/` or `tests/` are under `([\w/]+)/`")
# Files of others, by the page that names them.
FOREIGN = {
    "docs/decisions/0008-cpu-gemms-are-single-thread-tiles-on-threads-of-our-own.md": {"dnnl-config.cmake"},
    "docs/decisions/0018-survivors-find-the-cause-of-a-failure-and-end-the-step.md": {"src/ras/client.cc"},
    "docs/gpu-backend.md": {"cusolverDn.h"},
    "perf/results/trainers.md": {"train.py"},
}
# This one compares files of other projects with ours: only paths that no other has are ours for sure.
COMPARING = "docs/neighbours.md"


class Tree:
    """The paths of a repository: files and the folders that they are in."""

    def __init__(self, files):
        self.paths = set()
        for file in map(pathlib.PurePath, files):
            self.paths |= {str(path) for path in (file, *file.parents)}
        self.tops = {path.split("/")[0] for path in self.paths if "/" in path}
        self.rooms = {path.split("/")[2] for path in self.paths if re.match("include/trireme/[^/]+/", path)}
        self.ends = {"/".join(parts[begin:]) for parts in (path.split("/") for path in self.paths)
                     for begin in range(len(parts))}

    def names_top(self, name):
        return "/" in name and name.split("/")[0] in self.tops

    def has(self, name, under):
        """Whether there is such a path: below `under`, if given, or the end of one."""
        name = name.rstrip("/")
        if under and "/" in name and not self.names_top(name):
            name = f"{under}/{name}"
        known = self.paths if self.names_top(name) else self.ends
        if name in known:
            return True
        wanted = re.compile("[^/]*".join(map(re.escape, ANY.split(name))))
        return bool(ANY.search(name)) and any(map(wanted.fullmatch, known))


def choices(name):
    """a/{b,c}.hpp is a/b.hpp and a/c.hpp."""
    parts = CHOICE.split(name)
    return ["".join(one) for one in itertools.product(*(part.split(",") if index % 2 else [part]
                                                       for index, part in enumerate(parts)))]


def is_ours(page, name, tree):
    """Whether a word is a path of this repository, rather than one of a run, of a system or of others."""
    if name in FOREIGN.get(str(page), ()):
        return False
    if str(page) == COMPARING:
        return name.startswith(("include/trireme/", "tests/", *(f"src/{room}/" for room in tree.rooms)))
    return tree.names_top(name) or not name.startswith((".", "/")) and pathlib.PurePath(name).suffix in SUFFIXES


def named_paths(page, text, tree):
    """(line, path) of each path that a page names outside of blocks."""
    in_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        in_block ^= bool(BLOCK.match(line))
        for word in [] if in_block else [word for span in SPAN.findall(line) for word in span.split()]:
            match = PATH.fullmatch(word)
            for name in choices(match[1]) if match else []:
                if is_ours(page, name, tree):
                    yield number, name


def check(texts, paths):
    """Findings on the pages among `texts` of a repository with these files."""
    tree = Tree(paths)
    for page, text in texts.items():
        under = UNDER.search(text)
        for number, name in named_paths(page, text, tree) if page.suffix == ".md" else []:
            if not tree.has(name, under and under[1]):
                yield f"{page}:{number}: there is no '{name}'"
