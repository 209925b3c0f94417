# SPDX-License-Identifier: Apache-2.0
"""shellcheck over the scripts."""

import subprocess


def check(root, selection, options):
    paths = [str(path) for path in selection.shell()]
    if not paths:
        return []
    # Parts that a script sources are checked with it: only there are their variables known.
    result = subprocess.run(["shellcheck", "--external-sources", "--check-sourced", "--format=gcc",
                             "--severity=warning", *paths], cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    found = result.stdout.splitlines()
    return found if found or result.returncode == 0 else ["shellcheck failed without a word"]
