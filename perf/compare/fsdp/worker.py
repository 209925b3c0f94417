# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch that trains a 34M Llama on random tokens with fully_shard, under torchrun on
CPUs. The first rank prints one JSON line: {"seconds": [...], "peak_rss_bytes"}, the largest peak."""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "pytorch"))
import small_llama  # noqa: E402
from llama import Llama  # noqa: E402


class UntiedLlama(Llama):
    """With a head of its own."""

    def __init__(self, vocab, positions, hidden, layers, heads, kv_heads, intermediate):
        super().__init__(vocab, positions, hidden, layers, heads, kv_heads, intermediate)
        self.head = nn.Linear(hidden, vocab, bias=False)
        self._initialise(self.head)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        seq = tokens.shape[1]
        for block in self.blocks:
            x = block(x, self.cos[:seq], self.sin[:seq])
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def shard(model: UntiedLlama, precision: str) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    policy = MixedPrecisionPolicy()
    if precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in [model.embed, *model.blocks]:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    # Backward reads the head first.
    fully_shard([model.norm, model.head], mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduces", choices=["each", "last"], required=True)
    parser.add_argument("--precision", choices=["bf16", "fp32"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = UntiedLlama(small_llama.VOCABULARY, small_llama.SEQ, 512, 8, 8, 8, 1408)
    shard(model, args.precision)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for index in range(small_llama.MICRO_BATCHES):
            is_last = index + 1 == small_llama.MICRO_BATCHES
            model.set_requires_gradient_sync(args.reduces == "each" or is_last)
            tokens = torch.randint(0, small_llama.VOCABULARY,
                                   (small_llama.MICRO_BATCH, small_llama.SEQ + 1))
            loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
            (loss / small_llama.MICRO_BATCHES).backward()
        optimizer.step()

    seconds = []
    for _ in range(args.steps):
        dist.barrier()
        begin = time.perf_counter()
        step()
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
    peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024])
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print("RESULT " + json.dumps({"seconds": seconds, "peak_rss_bytes": int(peak)}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
