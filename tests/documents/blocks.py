# SPDX-License-Identifier: Apache-2.0
"""Commands that a page shows, and lines of which nobody can say whether they are commands.

Every fenced block names its language. In blocks of a shell every line is a command, but for blanks
and remarks; in those of a console, and outside of blocks, a line that begins with "$ ".
"""

import dataclasses
import re

SHELLS = {"sh", "bash"}
CONSOLES = {"console"}
OTHERS = {"text", "ini", "python", "cmake", "yaml"}
FENCE = re.compile(r"^\s*```(.*)$")
PROGRAMS = re.compile(
    r"^\s*(?:[A-Z_]+=\S+ )*(?:sudo )?"
    r"(?:trireme|mpirun|srun|sbatch|salloc|scontrol|h5dump|python3|cmake|cpack|ctest|dpkg|tar|git|"
    r"scripts/\S+|build/\S+|perf/\S+|tests/\S+|/tmp/\S+)(?: |$)")
# A picture's line, whatever word it begins with.
PICTURE = re.compile("[─►│▼]")


@dataclasses.dataclass
class Page:
    """Line number and text of each command, and of each finding."""
    commands: list
    findings: list


def read_page(text):
    page, language, open_at, begun = Page([], []), None, 0, None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language, open_at = fence[1].strip(), number
            if language not in SHELLS | CONSOLES | OTHERS:
                known = ", ".join(sorted(SHELLS | CONSOLES | OTHERS))
                page.findings.append((number, f"a block of '{language}' (its commands would not be "
                                              f"seen); name one of {known}"))
        elif fence:
            if begun:
                page.findings.append((begun[0], "a command that its block does not end"))
            language, begun = None, None
        elif language in SHELLS:
            begun = shell_line(page, number, line, begun)
        elif line.strip().startswith("$ "):
            page.commands.append((number, line.strip().removeprefix("$ ")))
        elif language in OTHERS and PROGRAMS.match(line) and not PICTURE.search(line):
            page.findings.append((number, f"a command in a block of {language}; make it one of sh"))
    if language is not None:
        page.findings.append((open_at, "a block without an end"))
    return page


def shell_line(page, number, line, begun):
    """Number and text of a command that goes on in the next line; else none."""
    text = line.strip().removeprefix("$ ")
    if begun:
        number, text = begun[0], begun[1] + " " + text
    elif not text or text.startswith("#"):
        return None
    if text.endswith("\\"):
        return number, text[:-1].rstrip()
    page.commands.append((number, text))
    return None
