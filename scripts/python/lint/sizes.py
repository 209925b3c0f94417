# SPDX-License-Identifier: Apache-2.0
"""The lengths of files and folders of sources: within the limits of sizes.toml, or it says why not."""

import collections
import pathlib
import tomllib

from lint import license

SETTINGS = pathlib.PurePath("scripts/python/lint/sizes.toml")
PAGE = pathlib.PurePath("docs/architecture.md")
SOURCES = {".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".py", ".bash", ".cmake", ""}
PRODUCT = {"include", "spank-plugin", "src"}
TABLE = ("<!-- sizes -->\n", "<!-- /sizes -->")


def lengths_of(texts):
    """Lines of each source, and sources of each folder, by path; the license is no line."""
    lines, files = {}, collections.Counter()
    for path, text in texts.items():
        if path.suffix in SOURCES:
            all_lines = text.splitlines()
            lines[path] = len(all_lines) - license.count(all_lines)
            files[path.parent] += 1
    return {"lines": lines, "files": files}


def reasons_of(settings):
    return {**settings["whole"], **settings["to_split"]}


def too_large(sizes, settings):
    """Findings on what is over its limit and has no reason, or over what no reason allows."""
    reasons = reasons_of(settings)
    for unit, paths in sizes.items():
        for path, size in sorted(paths.items()):
            most = settings["most"][unit]
            if str(path) not in reasons:
                most = settings["product" if path.parts[:1] and path.parts[0] in PRODUCT else "other"][unit]
            if size > most:
                yield f"{path}:1: {size} {unit} (at most {most}); split it by what its parts do"


def stale(sizes, settings):
    """Findings on reasons of what is small enough or gone."""
    for name in [one for one in settings["whole"] if one in settings["to_split"]]:
        yield f"{SETTINGS}:1: '{name}' is to be whole and to be split"
    for name in reasons_of(settings):
        path = pathlib.PurePath(name)
        limits = settings["product" if path.parts[0] in PRODUCT else "other"]
        if not any(paths.get(path, 0) > limits[unit] for unit, paths in sizes.items()):
            yield f"{SETTINGS}:1: '{name}' is no larger than others may be; take its line out"


def table_of(settings):
    product, other, most = (settings[name] for name in ("product", "other", "most"))
    return (f"A folder has at most {product['files']} sources and a file at most {product['lines']} lines, in tests, "
            f"perf and scripts {other['files']} and {other['lines']}; what is larger, up to {most['files']} and "
            f"{most['lines']}, has its reason here, or its part to be taken out in `{SETTINGS}`, from which "
            "`scripts/lint` checks this.\n\n| larger | why it is whole |\n|---|---|\n" +
            "".join(f"| `{path}` | {reason} |\n" for path, reason in settings["whole"].items()))


def page_differs(page, settings):
    """Findings on a page that does not show the table."""
    begin, end = TABLE
    shown = page.split(begin)[-1].split(end)[0] if begin in page and end in page else ""
    missing = [line for line in table_of(settings).splitlines() if line not in shown.splitlines()]
    surplus = [line for line in shown.splitlines() if line not in table_of(settings).splitlines()]
    for line in missing:
        yield f"{PAGE}:1: between '{begin.strip()}' and '{end}' there must be: {line}"
    for line in surplus:
        yield f"{PAGE}:1: between '{begin.strip()}' and '{end}' there must not be: {line}"


def check(root, texts, complete):
    """Of some files alone (not `complete`) nobody can say how many a folder has."""
    settings = tomllib.loads((root / SETTINGS).read_text(encoding="utf-8"))
    sizes = lengths_of(texts)
    if not complete:
        return list(too_large({"lines": sizes["lines"]}, settings))
    return [*too_large(sizes, settings), *stale(sizes, settings),
            *page_differs(texts.get(PAGE, ""), settings)]
