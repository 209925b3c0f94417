#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""usage: read_tensor.py STEP_FOLDER [TENSOR]
One tensor of a checkpoint at its global shape, whatever layout has saved it; without a name: all
names. Only manifest.json and the shards are read; checksums are not compared ('trireme checkpoint
verify' does that)."""
import json
import math
import pathlib
import sys

import h5py


def elements(step, manifest, bucket, begin, count):
    """Elements [begin, begin + count) of a bucket: a few from each file that has a shard of it."""
    first, stride, _ = bucket["files"]
    shard = bucket["shard_elements"]
    values = []
    for position in range(begin // shard, (begin + count - 1) // shard + 1):
        name = manifest["files"][first + position * stride]["name"]
        with h5py.File(step / manifest.get("folder", "") / name) as file:
            dataset = file[bucket["dtype"]]
            shard_begin = (bucket["byte"] - dataset.id.get_offset()) // dataset.id.get_type().get_size()
            start = max(begin - position * shard, 0)
            stop = min(begin + count - position * shard, shard)
            values.extend(dataset[shard_begin + start : shard_begin + stop].tolist())
    return values


def read_tensor(step, name):
    """Shape and elements, row after row."""
    manifest = json.loads((step / "manifest.json").read_text())
    tensor = next(each for each in manifest["tensors"] if each["name"] == name)
    shape = tensor["shape"]
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    whole = [None] * math.prod(shape)
    for number, begin, *box in tensor["parts"]:
        offset, length = box[: len(shape)], box[len(shape) :]
        values = elements(step, manifest, manifest["buckets"][number], begin, math.prod(length))
        for index, value in enumerate(values):
            place = 0
            for at in reversed(range(len(shape))):
                index, inside = divmod(index, length[at])
                place += (offset[at] + inside) * strides[at]
            whole[place] = value
    return shape, whole


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) == 2:
        print("\n".join(t["name"] for t in json.loads((folder / "manifest.json").read_text())["tensors"]))
    else:
        its_shape, numbers = read_tensor(folder, sys.argv[2])
        print(its_shape, *numbers[:8], "..." if len(numbers) > 8 else "")
