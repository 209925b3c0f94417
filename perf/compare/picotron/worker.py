# SPDX-License-Identifier: Apache-2.0
"""One rank of picotron training a small Llama on random tokens, under torchrun on CPUs.

Uses picotron's own model, tensor, pipeline and data parallelism and schedules over gloo. Only what
needs a GPU or a network is left out: flash-attn's imports, downloaded weights and data sets. The
last rank prints one JSON line: {"seconds": [...], "tokens_per_step", "peak_rss_bytes"}.
"""

import argparse
import json
import os
import resource
import sys
import time
import types


def stand_in_for_flash_attention() -> None:
    """picotron imports it always and uses it only where FLASH_ATTEN is 1, which here it is not."""
    for name in ("flash_attn", "flash_attn.flash_attn_interface", "flash_attn.layers",
                 "flash_attn.layers.rotary", "flash_attn.ops", "flash_attn.ops.triton",
                 "flash_attn.ops.triton.layer_norm"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["flash_attn.flash_attn_interface"].flash_attn_func = None
    sys.modules["flash_attn.layers.rotary"].apply_rotary_emb = None
    sys.modules["flash_attn.ops.triton.layer_norm"].layer_norm_fn = None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picotron", required=True, help="a checkout of picotron")
    for axis in ("tensor", "pipeline", "data"):
        parser.add_argument(f"--{axis}", type=int, default=1)
    parser.add_argument("--precision", choices=["bf16", "fp32"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    return parser.parse_args()


def main() -> None:
    args = parse()
    os.environ.update(FLASH_ATTEN="0", DEVICE="cpu", CONTEXT_PARALLEL="0",
                      DTYPE="bfloat16" if args.precision == "bf16" else "float32")
    stand_in_for_flash_attention()
    sys.path.insert(0, args.picotron)

    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    import picotron.process_group_manager as pgm
    from picotron.data_parallel.data_parallel import DataParallelBucket
    from picotron.model import Llama
    from picotron.pipeline_parallel.pipeline_parallel import (PipelineParallel,
                                                              train_step_pipeline_1f1b)
    from picotron.tensor_parallel.tensor_parallel import apply_tensor_parallel

    # picotron waits for the GPU after each message, on CPUs too.
    torch.cuda.synchronize = lambda *_: None
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    pgm.setup_process_group_manager(tp_size=args.tensor, cp_size=1, pp_size=args.pipeline,
                                    dp_size=args.data)
    torch.manual_seed(1)
    config = types.SimpleNamespace(
        hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=8, vocab_size=8192, max_position_embeddings=args.seq,
        rms_norm_eps=1e-5, rope_theta=10000.0)
    dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
    device = torch.device("cpu")

    class Batches:
        """Random tokens in the form that picotron's loader gives."""
        grad_acc_steps = args.micro_batches

        def __next__(self) -> dict:
            tokens = torch.randint(0, config.vocab_size, (args.micro_batch, args.seq + 1))
            positions = torch.arange(args.seq).expand(args.micro_batch, -1).contiguous()
            return {"input_ids": tokens[:, :-1].contiguous(), "position_ids": positions,
                    "target_ids": tokens[:, 1:].contiguous(), "hidden_states": None}

    model = Llama(config)
    if args.tensor > 1:
        model = apply_tensor_parallel(model)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
    if args.pipeline > 1:
        model = PipelineParallel(model, config)
    model.to(dtype)
    model.train()
    if args.data > 1:
        model = DataParallelBucket(model)
    # As picotron's train.py chooses: the fused update on GPUs only.
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    batches = Batches()
    shapes = (args.micro_batch, args.seq, config.hidden_size)

    def accumulate() -> None:
        """As picotron's train_step does it."""
        for index in range(batches.grad_acc_steps):
            batch = next(batches)
            if args.data > 1:
                model.require_backward_grad_sync = index == batches.grad_acc_steps - 1
            logits = model(input_ids=batch["input_ids"])
            loss = F.cross_entropy(logits.view(-1, logits.shape[-1]),
                                   batch["target_ids"].reshape(-1))
            (loss / batches.grad_acc_steps).backward()

    seconds = []
    for _ in range(args.steps):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        if args.pipeline > 1:
            train_step_pipeline_1f1b(model, batches, shapes, device, dtype)
        else:
            accumulate()
        optimizer.step()
        if hasattr(model, "reset"):
            model.reset()
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
    if dist.get_rank() == dist.get_world_size() - 1:
        tokens = args.data * args.micro_batches * args.micro_batch * args.seq
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print("RESULT " + json.dumps(
            {"seconds": seconds, "tokens_per_step": tokens, "peak_rss_bytes": peak}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
