# SPDX-License-Identifier: Apache-2.0
"""One of two processes that save tensors of BYTES together, SAVES times; the first prints the stalls.
usage: worker.py FOLDER BYTES SAVES"""

import os
import shutil
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def main():
    folder, size, saves = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    count = 100
    state = {f"rank{rank}.tensor{index}": torch.full((size // 2 // count // 4,), float(index)) for index in range(count)}
    stalls, whole = [], []
    for _ in range(saves):
        dist.barrier()
        if rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
        dist.barrier()
        begin = time.perf_counter()
        future = dcp.async_save(state, checkpoint_id=folder)
        stalls.append(1e3 * (time.perf_counter() - begin))
        future.result()
        whole.append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        print(f"PyTorch {torch.__version__}, async_save: {saves} saves of {size / 1e9:.2f} GB; stall median "
              f"{statistics.median(stalls):.1f} ms (largest {max(stalls):.1f}); written in {statistics.median(whole):.0f} ms"
              " (nothing trains meanwhile)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
