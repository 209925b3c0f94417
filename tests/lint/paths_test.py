# SPDX-License-Identifier: Apache-2.0
"""Paths in backticks of documents are those of files and folders, of ours and not of others."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))
sys.dont_write_bytecode = True

from lint import paths  # noqa: E402

FILES = ["docs/a.md", "include/trireme/comm/group.hpp", "include/trireme/model/layer.hpp", "src/comm/core/group.cpp",
         "src/model/layers/layer.cpp", "src/model/layers/head.cpp", "scripts/build", "tests/mpi/comm.cmake", "README.md"]
RULE = "Paths below without `src/` or `tests/` are under `include/trireme/`.\n"


class PathsTest(unittest.TestCase):
    def found(self, text, page="docs/a.md"):
        return [line.split(": ")[1] for line in paths.check({pathlib.PurePath(page): text}, FILES)]

    def passes(self, *texts, **where):
        for text in texts:
            self.assertEqual(self.found(text, **where), [], text)

    def finds(self, *names, **where):
        for name in names:
            self.assertEqual(self.found(f"see `{name}`\n", **where), [f"there is no '{name}'"])

    def test_paths_from_the_top_are_there(self):
        self.passes("`src/comm/core/group.cpp`", "`src/comm/core/`, `src/model`", "`README.md`", "`scripts/build dev`",
                    "run `scripts/build release` > `docs/a.md`", "`src/comm/core/group.cpp:12-14,20`")
        self.finds("src/model/layer.cpp", "src/comm/mpi", "scripts/gone", "tests/mpi/gone.cmake")

    def test_the_end_of_a_path_is_enough_for_a_source(self):
        self.passes("`group.cpp`", "`core/group.cpp`", "`layers/head.cpp`", "`model/layer.hpp`")
        self.finds("gone.cpp", "mpi/group.cpp", "oup.cpp", "comm/layer.hpp", "gone.py", "gone.md")

    def test_choices_are_a_path_each(self):
        self.passes("`src/model/layers/{layer,head}.cpp`", "`group.{hpp,cpp}`", "`{group,layer}.{cpp,hpp}`")
        self.assertEqual(self.found("`src/model/{layers/layer,head}.cpp`"), ["there is no 'src/model/head.cpp'"])

    def test_stars_and_names_in_capitals_or_brackets_stand_for_any(self):
        self.passes("`src/model/layers/*.cpp`", "`src/<room>/layers`", "`tests/mpi/<folder>.cmake`", "`tests/mpi/NAME.cmake`",
                    "`comm/*.hpp`", "`src/comm/core/NAME.cpp`")
        self.finds("src/comm/*.cpp", "tests/mpi/NAME_test.cpp", "tests/<folder>.cmake")

    def test_other_things_are_no_paths(self):
        self.passes("`train/loss`", "`metrics.jsonl`, `config.json`", "`/etc/gone.py`", "`.cu`", "`a / b`", "`-j2`",
                    "`engine::measure`", "`RUN/trace/a.json`", "`mpi.parallel/equals`")

    def test_blocks_are_not_looked_at(self):
        self.passes("```sh\ncat `src/gone.cpp`\n```\n")
        self.assertEqual(len(self.found("```sh\n```\n`src/gone.cpp`\n")), 1)

    def test_a_page_may_say_where_short_paths_are(self):
        self.passes("`core/group.cpp`", RULE + "`comm/group.hpp`, `src/comm/core`, `group.cpp`")
        self.assertEqual(self.found(RULE + "`core/group.cpp`"), ["there is no 'core/group.cpp'"])

    def test_files_of_others_are_theirs(self):
        page = next(iter(paths.FOREIGN))
        name = next(iter(paths.FOREIGN[page]))
        self.passes(f"`{name}`", page=page)
        self.finds(name)
        self.passes("`src/theirs/a.cpp`, `matmul.cpp`", page=paths.COMPARING)
        self.finds("src/comm/gone.cpp", "tests/gone", page=paths.COMPARING)

    def test_lines_are_numbered(self):
        self.assertEqual(list(paths.check({pathlib.PurePath("docs/a.md"): "\n`src/gone.cpp`\n"}, FILES)),
                         ["docs/a.md:2: there is no 'src/gone.cpp'"])


if __name__ == "__main__":
    unittest.main()
