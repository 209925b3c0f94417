# SPDX-License-Identifier: Apache-2.0
"""Names that docs/checkpoint-format.md shows, looked for in the files of a checkpoint."""

import json
import re
import shutil
import subprocess

PARAMETER = r"(?:layers\.\d+|embedding|final_norm|head)(?:\.[a-z_]+)+"
# In text, in paths of HDF5 and in commands; NAME is any parameter's, T any tensor's.
TENSOR = re.compile(rf"[`/'](?P<name>(?:\w+\.\w+/)?(?:{PARAMETER}|NAME))[`'\] ]")
HDF5_PATH = re.compile(r"`(/<type>\w*)`")
MEMBER = re.compile(r"^\| ((?:`[\w.\[\]]+`(?:, )?)+) \|(.*)\|$", re.MULTILINE)


# What a step in an object store has besides.
OF_OBJECTS = {"folder"}


def members_of(manifest):
    """Members of manifest.json as the page's table has them: lists as files[]."""
    lists = ("files", "buckets", "tensors")
    top = [name + "[]" if name in lists else name for name in manifest]
    return {"": sorted(top), **{name + "[]": sorted(manifest[name][0]) for name in lists}}


def shown_members(page):
    """The same of the page: a row's words in back quotes are the members of what the row names."""
    table = page.split("\n## manifest.json\n")[1].split("\n## ")[0]
    shown, top = {}, []
    for names, meaning in MEMBER.findall(table):
        names = re.findall(r"`([^`]+)`", names)
        top += [name for name in names if "." not in name and name not in OF_OBJECTS]
        if names[0].endswith("[]"):
            # Words in brackets are an element's values, or say what a member holds.
            plain = re.sub(r"\([^)]*\)", "", meaning)
            shown[names[0]] = sorted(re.findall(r"`([\w\[\]]+)`", plain))
    return {"": sorted(top), **shown}


def listing(file):
    """Datasets and attributes, "/a/b" each."""
    text = subprocess.run(["h5dump", "-n", "1", str(file)], capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r"^ (?:dataset|attribute) +(/.*?)(?: ->.*)?$", text, re.MULTILINE))


def is_there(shown, names):
    pattern = re.escape(shown).replace("NAME", PARAMETER).replace("<type>", "(f32|bf16|i32)")
    return any(re.fullmatch(pattern, name) for name in names)


def findings(page, step):
    """What the page shows and the checkpoint in the folder `step` does not have."""
    manifest = json.loads((step / "manifest.json").read_text())
    found = []
    if shown_members(page) != members_of(manifest):
        found.append(f"members of manifest.json: {shown_members(page)}, but they are {members_of(manifest)}")
    tensors = {tensor["name"] for tensor in manifest["tensors"]}
    names = set(TENSOR.findall(page))
    if len(names) < 4:
        found.append(f"the page shows too few names of tensors: {sorted(names)}")
    found += [f"no tensor is called {name}" for name in sorted(names) if not is_there(name, tensors)]
    if not shutil.which("h5dump"):
        print("not looked for: names in HDF5 files (no h5dump on this machine)")
        return found
    whole = listing(step / "master.h5")
    found += [f"master.h5 has no {name}" for name in sorted(names) if not is_there("/" + name, whole)]
    shard = listing(step / "shard-00000.h5")
    paths = HDF5_PATH.findall(page)
    if len(paths) < 2:
        found.append(f"the page shows too few paths of a shard: {paths}")
    return found + [f"shard-00000.h5 has no {path}" for path in paths if not is_there(path, shard)]
