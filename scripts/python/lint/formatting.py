# SPDX-License-Identifier: Apache-2.0
"""clang-format decides how C++ is laid out."""

import subprocess


def check(root, selection, options):
    paths = [str(path) for path in selection.cpp()]
    if not paths:
        return []
    result = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths], cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    # One line a file is enough: the remedy is the same for all of its places.
    bad = {line.split(":")[0] for line in result.stdout.splitlines() if ": error:" in line}
    if result.returncode != 0 and not bad:
        return [result.stdout]
    return [f"{path}: not as clang-format lays it out; run clang-format -i {path}"
            for path in sorted(bad)]
