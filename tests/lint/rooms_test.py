# SPDX-License-Identifier: Apache-2.0
"""The rooms that README.md and docs/architecture.md show are those of the build.

usage: rooms_test.py FILE, which the build has written (trireme_write_rooms)
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(sys.argv.pop())
ROW = re.compile(r"^\| (\d+) \| \[?`([a-z]+)`", re.MULTILINE)


def findings_of_architecture(page, built):
    shown = re.search(r"<!-- rooms -->\n(.*?)<!-- /rooms -->", page, re.DOTALL)
    if shown is None:
        return ["docs/architecture.md has no rooms between its two comments"]
    return [] if shown[1] == built else [f"put {BUILT} between the two comments of docs/architecture.md"]


def findings_of_readme(page, built):
    shown, wanted = set(ROW.findall(page)), set(ROW.findall(built))
    return ([f"README.md has no room {name} on layer {layer}" for layer, name in sorted(wanted - shown)] +
            [f"the build has no room {name} on layer {layer}" for layer, name in sorted(shown - wanted)])


class Rooms(unittest.TestCase):
    def setUp(self):
        self.built = BUILT.read_text(encoding="utf-8")
        self.architecture = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        self.readme = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_the_picture_of_the_architecture_is_the_builds(self):
        self.assertEqual(findings_of_architecture(self.architecture, self.built), [])

    def test_the_readme_has_each_room_on_its_layer(self):
        self.assertEqual(findings_of_readme(self.readme, self.built), [])
        self.assertGreater(len(ROW.findall(self.built)), 15)

    def test_a_picture_that_differs_is_found(self):
        rooms = self.built.splitlines(keepends=True)
        for other in ["".join(rooms[:-1]), "".join(rooms) + rooms[-1], self.built.replace("launch", "lunch")]:
            page = self.architecture.replace(self.built, other)
            self.assertEqual(len(findings_of_architecture(page, self.built)), 1)
        self.assertEqual(len(findings_of_architecture("# Architecture\n", self.built)), 1)

    def test_a_room_that_the_readme_lacks_adds_or_moves_is_found(self):
        row = next(line for line in self.readme.splitlines(keepends=True) if ROW.match(line))
        layer, name = ROW.match(row).groups()
        self.assertEqual(findings_of_readme(self.readme.replace(row, ""), self.built),
                         [f"README.md has no room {name} on layer {layer}"])
        added = self.readme.replace(row, row + row.replace(f"`{name}`", "`attic`"))
        self.assertEqual(findings_of_readme(added, self.built),
                         [f"the build has no room attic on layer {layer}"])
        moved = self.readme.replace(row, row.replace(f"| {layer} |", "| 99 |"))
        self.assertEqual(len(findings_of_readme(moved, self.built)), 2)


if __name__ == "__main__":
    unittest.main()
