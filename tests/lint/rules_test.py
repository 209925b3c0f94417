# SPDX-License-Identifier: Apache-2.0
"""Each rule of scripts/lint finds what it is for, and nothing else."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))
sys.dont_write_bytecode = True

from lint import license, rules, tidy  # noqa: E402

# So that the rules find no links in this file.
DECISIONS = "docs/decisions"


def found(name, text, exists=lambda target: True):
    """Findings on a text that names its license."""
    path = pathlib.Path(name)
    return rules.check_text(path, license.with_license(path, text), exists)


class RulesTest(unittest.TestCase):
    def finds(self, word, name, text):
        lines = found(name, text)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(word, lines[0])

    def passes(self, name, text):
        self.assertEqual(found(name, text), [])

    def test_a_source_names_its_license_first(self):
        slashes, hashes = f"// {license.IDENTIFIER}\n", f"# {license.IDENTIFIER}\n"
        for name, text, line in [("src/a/b.cpp", "int a;\n", slashes), ("src/a/b.cu", "int a;\n", slashes),
                                 ("src/a/b.hpp.in", "int a;\n", slashes),
                                 ("src/a/CMakeLists.txt", "set(a b)\n", hashes),
                                 ("a/b.cmake", "set(a b)\n", hashes), ("a/b.bash", "b=1\n", hashes),
                                 ("a/b.py", '"""B."""\n', hashes), ("a/__init__.py", "", hashes)]:
            path = pathlib.Path(name)
            findings = rules.check_text(path, text, lambda target: True)
            self.assertEqual(len([one for one in findings if "license is missing" in one]), 1, name)
            self.assertEqual(license.with_license(path, text), line + text)
            self.assertEqual(license.with_license(path, line + text), line + text)
            self.assertEqual(list(license.names_license(path, (line + text).splitlines())), [])

    def test_the_license_comes_after_the_interpreter(self):
        path, text = pathlib.Path("scripts/a"), "#!/usr/bin/env bash\n# Does it.\n"
        self.assertEqual([number for number, _ in license.names_license(path, text.splitlines())], [2])
        self.assertEqual(license.with_license(path, text),
                         f"#!/usr/bin/env bash\n# {license.IDENTIFIER}\n# Does it.\n")

    def test_another_license_or_one_further_down_is_a_finding(self):
        for text in ("// SPDX-License-Identifier: MIT\n", f"\n// {license.IDENTIFIER}\n",
                     f"# {license.IDENTIFIER}\n"):
            self.assertEqual(len(list(license.names_license(pathlib.Path("a.cpp"), text.splitlines()))), 1)

    def test_data_and_documents_need_no_license(self):
        for name in ("docs/a.md", "configs/a.conf", "tests/golden/a.json", "tests/golden/a.env", "LICENSE",
                     "tests/fuzz/corpus/record/a.txt", "slurm/modulefiles/a", "docs/images/a.svg"):
            self.assertEqual(license.with_license(pathlib.Path(name), "a\n"), "a\n")

    def test_empty_names_are_refused(self):
        for name in ["file_utils.cpp", "memory_manager.cpp", "helpers.cpp", "common.cpp"]:
            self.finds("says nothing", f"src/a/{name}", "int a;\n")
        self.passes("src/a/utilisation.cpp", "int a;\n")

    def test_unfinished_work_is_found_in_any_text(self):
        for name in ["src/a/b.cpp", "docs/a.md", "scripts/a"]:
            self.finds("finish it", name, "text\n// TO" + "DO later\n")

    def test_json_is_written_in_one_place(self):
        for name in ("src/a/b.cpp", "spank-plugin/b.cpp", "perf/a.cpp"):
            self.finds("json_text", name, "out << json.dump(2);\n")
            self.finds("json_text", name, "out << Json(x)\n  .dump ();\n")
        self.passes("src/base/json.cpp", "return value.dump(2);\n")
        self.passes("src/a/b.cpp", "// .dump() throws\nauto text = base::json_text(json);\n")
        self.passes("tests/a/b.cpp", "CHECK(json.dump() == text);\n")

    def test_questions_about_names_do_not_throw(self):
        for code in ("if (fs::exists(path)) return;", "fs::absolute(run / f(a, b)).string();",
                     "std::filesystem::is_directory(\n    path);"):
            self.finds("error_code", "src/a/b.cpp", code + "\n")
        for code in ("fs::exists(path / name(a), error);", "base::exists(path);",
                     "fs::exists(fs::symlink_status(link, error));", "// fs::exists(path)"):
            self.passes("src/a/b.cpp", code + "\n")

    def test_operands_that_many_places_tell_apart_are_named(self):
        for code in ("kernels.issue(LinearForward{x, w, {}, y});", "issue(Five{a, f(b, c), {d, e},\n  g, h});"):
            self.finds("operands by their places", "src/a/b.cpp", code + "\n")
        for code in ("issue(LinearForward{.x = x, .w = w, .y = y});", "issue(Four{a, f(b, {}), {c, d}, e});",
                     "issue(operation);"):
            self.passes("src/a/b.cpp", code + "\n")
        self.passes("tests/a/b.cpp", "kernels.issue(LinearForward{x, w, {}, y});\n")

    def test_the_environment_is_the_entry_points(self):
        self.finds("getenv", "src/a/b.cpp", 'auto x = std::getenv("X");\n')
        self.passes("src/a/b.cpp", "// no getenv here\nspank_getenv(spank);\n")
        self.passes("tests/a/b.cpp", 'auto x = std::getenv("X");\n')

    def test_conditionals_belong_to_backends(self):
        self.finds("conditional", "src/model/b.cpp", "#ifdef X\n#endif\n")
        self.passes("src/device/cuda/b.cpp", "#if X\n#endif\n")
        self.passes("src/comm/nccl_group.cpp", "#if X\n#endif\n")

    def test_macros_are_for_contracts(self):
        self.finds("macro X", "src/a/b.cpp", "#define X 1\n")
        self.passes("include/trireme/base/contract.hpp", "#pragma once\n#define X 1\n")

    def test_a_default_hides_enumerators(self):
        enum = "switch (x) {\n  case Kind::one:\n    return 1;\n  default:\n    return 2;\n}\n"
        number = "switch (x) {\n  case 1:\n    return 1;\n  default:\n    return 2;\n}\n"
        self.finds("enumerators", "src/a/b.cpp", enum)
        self.passes("src/a/b.cpp", number)
        indented = "".join(f"    {line}\n" for line in number.splitlines())
        inner = "switch (y) {\n  case Kind::one:\n" + indented + "}\n"
        self.passes("src/a/b.cpp", inner)

    def test_headers_are_included_once(self):
        self.finds("pragma once", "include/trireme/a/b.hpp", "int a;\n")
        self.passes("include/trireme/a/b.hpp", "#pragma once\nint a;\n")

    def test_every_program_is_built_by_all(self):
        for name in ("perf/bench/a/CMakeLists.txt", "scripts/cmake/A.cmake"):
            self.finds("EXCLUDE_FROM_ALL", name, "add_executable(bench_a\n  EXCLUDE_FROM_ALL a.cpp)\n")
        self.passes("perf/bench/a/CMakeLists.txt", "add_executable(bench_a a.cpp)  # EXCLUDE_FROM_ALL\n")
        self.passes("src/a/CMakeLists.txt", "add_library(a OBJECT EXCLUDE_FROM_ALL a.cpp)\n")

    def test_a_comment_begins_with_its_noun(self):
        for text in ("/// Of a rank.\nint a;\n", "int a;  ///< What it is\n", "  // What is left.\n",
                     "/// A.\n///\n/// Of b.\n", "int a;  // a\n// Of b.\n"):
            self.finds("begin with the noun", "src/a/b.cpp", text)
        for text in ("/// Bytes of a rank, as it tells them.\n/// What it does.\n", "int a;  // of a rank\n",
                     "// Off.\n// Whatever.\n", 'say("// Of a rank");\n', "// Offers.\n"):
            self.passes("src/a/b.cpp", text)
        self.passes("src/a/b.py", "# Of a rank.\na = 1\n")

    def test_python_must_parse(self):
        self.finds("not Python", "scripts/a.py", "def f(:\n")

    def test_links_lead_somewhere(self):
        text = "see [this](gone.md#part) and [that](https://example.org/x)\n"
        self.assertEqual(len(found("docs/a.md", text, lambda target: False)), 1)
        self.assertEqual(found("docs/a.md", text), [])

    def test_decisions_have_numbers_of_their_own(self):
        names = [f"{DECISIONS}/{name}" for name in ("0001-a.md", "0001-b.md", "0002-c.md")]
        self.assertEqual(len(list(rules.decision_numbers(map(pathlib.Path, names)))), 1)

    def records(self, change=None, count=2):
        """Findings on records 1 to `count`, each in the index and linked from a page, after `change`."""
        names = [f"{number:04d}-a.md" for number in range(1, count + 1)]
        texts = {f"{DECISIONS}/{name}": "# A\n" for name in names}
        texts[f"{DECISIONS}/README.md"] = "".join(f"- [a]({name})\n" for name in names)
        texts["docs/a.md"] = "".join(f"[a](decisions/{name})\n" for name in names)
        texts.update(change or {})
        return list(rules.decision_records({pathlib.Path(name): text for name, text in texts.items()}))

    def test_a_linked_decision_is_well(self):
        self.assertEqual(self.records(), [])
        self.assertEqual(self.records(count=35), [])

    def test_decisions_are_few(self):
        self.assertIn("36 records", "".join(self.records(count=36)))

    def test_a_decision_is_linked_from_what_it_governs(self):
        one = "[a](decisions/0001" "-a.md)\n"
        lines = self.records({"docs/a.md": one})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("0002-a.md:1: linked from nowhere", lines[0])
        self.assertEqual(self.records({"docs/a.md": one, "src/a.cpp": f"// {DECISIONS}/0002\n"}), [])
        self.assertEqual(len(self.records({"docs/a.md": one, f"{DECISIONS}/0001-a.md": f"{DECISIONS}/0002"})), 1)

    def test_links_to_decisions_lead_somewhere(self):
        for link in ("0003", "0003-a.md", "0001-b.md"):
            lines = self.records({"src/a.cpp": f"//\n// {DECISIONS}/{link}\n"})
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(f"src/a.cpp:2: there is no decision '{link}'", lines[0])

    def test_the_index_has_every_decision(self):
        lines = self.records({f"{DECISIONS}/README.md": "[a](0001-a.md)\n"})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("0002-a.md:1: the index", lines[0])


class MemoryTest(unittest.TestCase):
    def test_a_change_of_an_included_header_is_a_change_of_the_file(self):
        import tempfile
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "a.cpp").write_text('#include "b.hpp"\n')
            (folder / "b.hpp").write_text('#include "c.hpp"\n')
            (folder / "c.hpp").write_text("int x;\n")
            (folder / "d.hpp").write_text("int y;\n")
            unit = tidy.Unit({"file": str(folder / "a.cpp"), "command": "g++ a.cpp"})
            key = lambda: unit.key(folder, tidy.Includes(folder), b"")  # noqa: E731
            before = key()
            (folder / "d.hpp").write_text("int z;\n")
            self.assertEqual(key(), before)
            (folder / "c.hpp").write_text("int z;\n")
            self.assertNotEqual(key(), before)
            self.assertNotEqual(unit.key(folder, tidy.Includes(folder), b"other settings"), key())
            before = key()
            (folder / ".clang-tidy").write_text("Checks: -*\n")
            self.assertNotEqual(key(), before)


if __name__ == "__main__":
    unittest.main()
