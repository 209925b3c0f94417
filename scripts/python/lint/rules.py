# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that no other tool knows. A rule takes a path and its lines and yields
(line number, text); where it must be broken, the exception stands here with its reason."""

import ast
import pathlib
import re

from lint import files, license, paths, sizes

HEADERS = {".hpp", ".h", ".cuh"}

# Spelled so that this file does not break its own rule.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
BANNED_NAME = re.compile(r"manager|helper|utils?(?=$|[_.-])|handler|common|misc(?=$|[_.-])")
ENVIRONMENT = re.compile(r"\b(secure_getenv|getenv|setenv|putenv|environ)\b")
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)")
CASE_OF_ENUM = re.compile(r"^\s*case\s+(\w+::)*[A-Z]\w*::\w+\s*:")
SWITCH = re.compile(r"\bswitch\s*\(")
DEFAULT = re.compile(r"^\s*default\s*:")
DUMP = re.compile(r"\.dump\s*\(")
THROWING_QUESTION = re.compile(r"\b(?:fs|filesystem)::(exists|is_directory|absolute)\s*\(")
PROGRAM_ON_DEMAND = re.compile(r"\badd_executable\s*\([^)]*\bEXCLUDE_FROM_ALL\b")
ISSUED = re.compile(r"\bissue\(\s*(?:\w+::)*(\w+)\{")
MOST_POSITIONAL_OPERANDS = 4
COMMENT = re.compile(r"//[/!]?<?\s*(\S.*)?$")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")

MOST_DECISIONS = 35
DECISIONS = pathlib.PurePath("docs/decisions")
RECORD = re.compile(r"\b(\d{4})-[\w-]+\.md$")
DECISION_LINK = re.compile(r"\bdecisions/((\d{4})\b(?:-[\w-]+\.md)?)")

# A backend's own files: their names or folders say so.
BACKEND = re.compile(r"(^|[/_])(cuda|nccl|ucx|cpu|shm|mpi)([/_.]|$)")
CONDITIONALS_ALLOWED = {
    "src/device/denormals.hpp": "the register that flushes denormals has one name per architecture",
    "src/comm/core/progress_engine.cpp": "the instruction for a spinning wait has one name per architecture",
}
ENVIRONMENT_ALLOWED = {
    "spank-plugin/callbacks.cpp": "a plugin's entry points: Slurm's commands have no other way in",
    "spank-plugin/submit_side.cpp": "likewise; what tasks inherit is set where the command runs",
    "src/base/cuda_libraries.cpp": "adds to the loader's search, which reads the process's own",
    "src/comm/nccl/diagnostics/log.cpp": "NCCL reads its log's place from the process's environment",
    "src/nccl-net-plugin/plugin.cpp": "likewise: NCCL loads the plugin into any program",
    "src/runtime/library_environment.cpp": "CUDA, UCX and NCCL read the process's environment",
    "src/launch/slurm_command.cpp": "a child inherits the environment, as any child does",
}
MACROS_ALLOWED = {
    "include/trireme/base/contract.hpp": "contracts are the house's only macros",
    "src/data/tokenizer/text/regex.cpp": "PCRE2 is told the width of its characters by a macro",
}


JSON_WRITER = "src/base/json.cpp"
QUESTIONS_ALLOWED = {"src/checkpoint/save/commit.cpp": "asks a status that it has"}


def is_product(path):
    return path.parts[0] in {"src", "include", "spank-plugin"}


def is_cpp(path):
    return path.suffix in {".cpp", ".hpp", ".c", ".h", ".cu", ".cuh"}


def file_names(path, lines):
    match = BANNED_NAME.search(path.name.lower())
    if match:
        yield 1, f"'{match[0]}' in a file's name says nothing; name what the file does"


def unfinished_work(path, lines):
    for number, line in enumerate(lines, start=1):
        match = UNFINISHED.search(line)
        if match:
            yield number, f"'{match[0]}': finish it, or write an issue"


def environment(path, lines):
    if not is_product(path) or not is_cpp(path) or str(path) in ENVIRONMENT_ALLOWED:
        return
    for number, line in enumerate(lines, start=1):
        match = ENVIRONMENT.search(code_of(line))
        if match:
            yield number, (f"'{match[0]}' (only the entry point knows the environment); take a "
                           "base::Environment as argument")


def conditionals(path, lines):
    if not is_product(path) or not is_cpp(path) or str(path) in CONDITIONALS_ALLOWED:
        return
    if BACKEND.search(str(path)):
        return
    for number, line in enumerate(lines, start=1):
        if CONDITIONAL.match(line):
            yield number, ("conditional compilation outside a backend's own file; make each "
                           "variant a file and let CMake choose")


def macros(path, lines):
    if not is_product(path) or not is_cpp(path) or str(path) in MACROS_ALLOWED:
        return
    for number, line in enumerate(lines, start=1):
        match = MACRO.match(line)
        if match:
            yield number, f"macro {match[1]} (macros are for contracts); write a function"


def json_writers(path, lines):
    """The library's own writer throws at bytes that are not UTF-8, as names of files may have."""
    if not is_cpp(path) or not (is_product(path) or path.parts[0] == "perf") or str(path) == JSON_WRITER:
        return
    for number, line in enumerate(lines, start=1):
        if DUMP.search(code_of(line)):
            yield number, "'.dump(' throws at bytes that are not UTF-8; write base::json_text()"


def throwing_questions(path, lines):
    """Names of users may be too long, lie behind a closed folder, or belong to a working folder that
    is gone: without an error_code the library throws then, which ends as a defect."""
    if not is_product(path) or not is_cpp(path) or str(path) in QUESTIONS_ALLOWED:
        return
    text = "\n".join(code_of(line) for line in lines)
    for match in THROWING_QUESTION.finditer(text):
        arguments = arguments_at(text, match.end())
        if len(arguments) < 2 and "status(" not in arguments[0]:
            number = text.count("\n", 0, match.start()) + 1
            yield number, (f"'{match[1]}(' without an error_code throws at names that cannot be "
                           f"used; write base::{match[1]}()")


def operands_by_place(path, lines):
    """Which tensor is which is told by names, not by counting commas and holes."""
    if not is_product(path) or not is_cpp(path):
        return
    text = "\n".join(code_of(line) for line in lines)
    for match in ISSUED.finditer(text):
        operands = [operand.strip() for operand in arguments_at(text, match.end())]
        if operands[0].startswith("."):
            continue
        if "{}" in operands or len(operands) > MOST_POSITIONAL_OPERANDS:
            number = text.count("\n", 0, match.start()) + 1
            yield number, (f"{match[1]}'s operands by their places, with a hole or more than "
                           f"{MOST_POSITIONAL_OPERANDS}; name them: .x = x")


def arguments_at(text, begin):
    """Of a call or a value whose parenthesis or brace ends before `begin`."""
    depth = 0
    arguments = [""]
    for letter in text[begin:]:
        if letter in ")}" and depth == 0:
            break
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += letter
    return arguments


def defaults_of_enums(path, lines):
    """A default hides the enumerator that is added next year. Which switch it belongs to is told
    by indentation: clang-format sees to that."""
    if not is_cpp(path):
        return
    open_switches = []
    for number, line in enumerate(lines, start=1):
        indent = len(line) - len(line.lstrip())
        while open_switches and line.strip() and indent <= open_switches[-1][0]:
            open_switches.pop()
        if SWITCH.search(code_of(line)):
            open_switches.append([indent, False])
        elif open_switches and CASE_OF_ENUM.match(line):
            open_switches[-1][1] = True
        elif open_switches and DEFAULT.match(line) and open_switches[-1][1]:
            yield number, "default: in a switch over an enum; list the enumerators"


def header_guards(path, lines):
    if path.suffix in HEADERS and "#pragma once" not in lines[:3]:
        yield 1, "no #pragma once in the first lines"


def programs_on_demand(path, lines):
    """A program that no build makes stops compiling, and nobody sees it."""
    if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
        return
    text = "\n".join(line.split("#")[0] for line in lines)
    for match in PROGRAM_ON_DEMAND.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        yield number, ("a program outside of `all` (no build would see it break); leave "
                       "EXCLUDE_FROM_ALL out")


def comment_begins(path, lines):
    """A comment begins with the noun that it is about; one that begins with "Of" or "What" leaves it out."""
    if not is_cpp(path):
        return
    goes_on = False
    for number, line in enumerate(lines, start=1):
        match = COMMENT.search(without_texts(line))
        words = (match[1] or "").split() if match else []
        if words and not goes_on and words[0] in ("Of", "What"):
            yield number, f"a comment begins with '{words[0]}'; begin with the noun that it is about"
        goes_on = bool(words) and line.lstrip().startswith("//") and not line.endswith(license.IDENTIFIER)


def python_syntax(path, lines):
    if path.suffix != ".py":
        return
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        yield error.lineno or 1, f"not Python: {error.msg}"


def document_links(path, lines, exists):
    if path.suffix != ".md":
        return
    for number, line in enumerate(lines, start=1):
        for match in LINK.finditer(line):
            target = match[1]
            if "://" in target or target.startswith("mailto:"):
                continue
            if not exists(path.parent / target):
                yield number, f"the link to '{target}' leads nowhere"


def decision_numbers(paths):
    """Two decisions with one number cannot be told apart."""
    seen = {}
    for path in paths:
        match = re.match(r"docs/decisions/(\d{4})-", str(path))
        if match and seen.setdefault(match[1], path) != path:
            yield f"{path}:1: number {match[1]} is that of {seen[match[1]].name}; take a free one"


def decision_records(texts):
    """Of all files' texts: records are few, in their index, each linked from what it governs, and
    no link names one that is gone."""
    records = {path.name[:4]: path.name for path in texts
               if pathlib.PurePath(path).parent == DECISIONS and RECORD.match(path.name)}
    if len(records) > MOST_DECISIONS:
        yield (f"{DECISIONS}:1: {len(records)} records (over {MOST_DECISIONS} are read by nobody); "
               "merge those of one subject")
    linked = set()
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            for link, decision in DECISION_LINK.findall(line):
                if link not in (decision, records.get(decision)) or decision not in records:
                    yield f"{path}:{number}: there is no decision '{link}'"
                elif DECISIONS not in pathlib.PurePath(path).parents:
                    linked.add(decision)
    index = next((text for path, text in texts.items() if path == DECISIONS / "README.md"), "")
    for decision, name in sorted(records.items()):
        if name not in index:
            yield f"{DECISIONS / name}:1: the index {DECISIONS}/README.md does not have it"
        if decision not in linked:
            yield (f"{DECISIONS / name}:1: linked from nowhere outside {DECISIONS}; link it from "
                   "the source or page that it governs")


def without_texts(line):
    """Without what stands in quotes."""
    return re.sub(r'"(\\.|[^"\\])*"', '""', line)


def code_of(line):
    """Without comment and text in quotes."""
    return without_texts(line).split("//")[0]


LINE_RULES = [license.names_license, file_names, unfinished_work, environment, conditionals, macros,
              json_writers, throwing_questions, operands_by_place, defaults_of_enums, header_guards,
              programs_on_demand, comment_begins, python_syntax]


def check_text(path, text, exists):
    """Findings of one file; `exists` tells whether a path relative to the root does."""
    lines = text.splitlines()
    found = []
    for rule in LINE_RULES:
        found += [(number, message) for number, message in rule(path, lines)]
    found += list(document_links(path, lines, exists))
    return [f"{path}:{number}: {message}" for number, message in sorted(found)]


def check(root, selection, options):
    found = list(decision_numbers(selection.paths))
    texts = {}
    for path in selection.texts():
        try:
            texts[path] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += check_text(path, texts[path], lambda target: (root / target).exists())
    found += paths.check(texts, files.select(root, []).paths)
    found += sizes.check(root, texts, not selection.named)
    # Of some files alone nobody can say what is linked from nowhere.
    if not selection.named:
        found += decision_records(texts)
    return found
