"""The rooms that README.md and docs/architecture.md show are those of the build.

usage: rooms_test.py FILE, which the build has written (trireme_write_rooms)
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(sys.argv.pop())


class Rooms(unittest.TestCase):
    def test_the_picture_of_the_architecture_is_the_builds(self):
        page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        shown = re.search(r"<!-- rooms -->\n(.*?)<!-- /rooms -->", page, re.DOTALL)
        self.assertIsNotNone(shown, "docs/architecture.md has no rooms between its two comments")
        self.assertEqual(shown.group(1), BUILT.read_text(encoding="utf-8"),
                         f"put {BUILT} between the two comments")

    def test_the_readme_has_each_room_on_its_layer(self):
        row = re.compile(r"^\| (\d+) \| \[?`([a-z]+)`", re.MULTILINE)
        built = sorted(row.findall(BUILT.read_text(encoding="utf-8")))
        readme = sorted(row.findall((ROOT / "README.md").read_text(encoding="utf-8")))
        self.assertEqual(readme, built)
        self.assertGreater(len(built), 15)


if __name__ == "__main__":
    unittest.main()
