# SPDX-License-Identifier: Apache-2.0
"""Files and folders that are too large have a reason, and reasons are for what is too large."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))
sys.dont_write_bytecode = True

from lint import license, sizes  # noqa: E402

LIMITS = {"product": {"lines": 30, "files": 2}, "other": {"lines": 34, "files": 3}, "most": {"lines": 40, "files": 4}}


def text_of(lines):
    return f"// {license.IDENTIFIER}\n" + "int a;\n" * lines


class SizesTest(unittest.TestCase):
    def found(self, texts, whole=None, to_split=None):
        settings = {**LIMITS, "whole": whole or {}, "to_split": to_split or {}}
        measured = sizes.lengths_of({pathlib.PurePath(path): text for path, text in texts.items()})
        return [*sizes.too_large(measured, settings), *sizes.stale(measured, settings)]

    def finds(self, word, *arguments):
        lines = self.found(*arguments)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(word, lines[0])

    def test_files_of_the_product_are_shorter_than_others(self):
        for path, most in [("src/a/b.cpp", 30), ("include/trireme/a.hpp", 30), ("spank-plugin/a.cpp", 30),
                           ("tests/a/b.py", 34), ("perf/a.cu", 34), ("scripts/a", 34), ("CMakeLists.cmake", 34)]:
            self.assertEqual(self.found({path: text_of(most)}), [])
            self.finds(f"{path}:1: {most + 1} lines (at most {most})", {path: text_of(most + 1)})

    def test_documents_and_data_are_as_long_as_they_are(self):
        self.assertEqual(self.found({"docs/a.md": "word\n" * 99, "src/a/CMakeLists.txt": "word\n" * 99}), [])

    def test_folders_of_the_product_have_fewer_sources_than_others(self):
        for folder, most in [("src/a", 2), ("tests/a", 3)]:
            texts = {f"{folder}/{number}.cpp": "" for number in range(most)}
            self.assertEqual(self.found({**texts, f"{folder}/CMakeLists.txt": "", f"{folder}/b/c.cpp": ""}), [])
            self.finds(f"{folder}:1: {most + 1} files (at most {most})", {**texts, f"{folder}/a.hpp": ""})

    def test_a_reason_allows_more_but_not_anything(self):
        reason = {"src/a/b.cpp": "one subject"}
        for arguments in [(reason, None), (None, reason)]:
            self.assertEqual(self.found({"src/a/b.cpp": text_of(40)}, *arguments), [])
            self.finds("41 lines (at most 40)", {"src/a/b.cpp": text_of(41)}, *arguments)

    def test_reasons_of_what_is_small_or_gone_are_refused(self):
        for name in ("src/a/b.cpp", "src/a", "src/gone.cpp"):
            self.finds(f"'{name}' is no larger", {"src/a/b.cpp": text_of(30)}, {name: "one subject"})

    def test_one_list_has_the_reason(self):
        reason = {"src/a/b.cpp": "one subject"}
        self.finds("whole and to be split", {"src/a/b.cpp": text_of(31)}, reason, reason)

    def test_the_page_shows_what_is_whole(self):
        settings = {**LIMITS, "whole": {"src/a.cpp": "one", "src/b.cpp": "two"}, "to_split": {"src/c.cpp": "three"}}
        begin, end = sizes.TABLE
        page = f"# Sizes\n{begin}{sizes.table_of(settings)}{end}\n"
        self.assertEqual(list(sizes.page_differs(page, settings)), [])
        self.assertNotIn("src/c.cpp", page)
        for other in (page.replace("| `src/b.cpp` | two |\n", ""), page.replace(end, f"| `src/d.cpp` | four |\n{end}")):
            self.assertEqual(len(list(sizes.page_differs(other, settings))), 1)
        self.assertEqual(len(list(sizes.page_differs(page.replace("two", "2"), settings))), 2)
        self.assertGreater(len(list(sizes.page_differs("# Sizes\n", settings))), 3)


if __name__ == "__main__":
    unittest.main()
