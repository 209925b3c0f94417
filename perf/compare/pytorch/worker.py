# SPDX-License-Identifier: Apache-2.0
"""Trains GPT-2 124M (or --model) on random tokens when told to: each line on stdin, or each number
of --orders, is a number of steps.

Answers each with one JSON line: wall and processor seconds of each step, the last loss and memory.
A worker waits on stdin between orders, so several of them take turns on one machine.
"""

import argparse
import contextlib
import json
import sys
import time

import torch

from gpt2 import GPT2
from llama import Llama


def status_bytes(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def make_model(text: str, seq: int) -> tuple[torch.nn.Module, int]:
    """A model of the shape that the JSON names, and its vocabulary."""
    if not text:
        return GPT2(), 50257
    shape = json.loads(text)
    vocabulary = shape["vocabulary"]
    sizes = (vocabulary, seq, shape["hidden"], shape["layers"], shape["heads"])
    if shape["architecture"] == "gpt2":
        return GPT2(*sizes), vocabulary
    return Llama(*sizes, shape["kv_heads"], shape["intermediate"]), vocabulary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--precision", choices=["bf16", "fp32"], required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--model", default="", help="JSON: architecture (gpt2 or llama), hidden, "
                        "layers, heads, kv_heads, intermediate, vocabulary")
    parser.add_argument("--orders", help="such as 5,20: taken in place of stdin")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    on_gpu = args.device == "cuda"
    model, vocabulary = make_model(args.model, args.seq)
    model.to(args.device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    loss_of = torch.compile(model) if args.mode == "compile" else model
    autocast = (torch.autocast(args.device, dtype=torch.bfloat16) if args.precision == "bf16"
                else contextlib.nullcontext())
    tokens = torch.randint(0, vocabulary, (args.batch, args.seq + 1), device=args.device)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    anonymous = 0
    for order in args.orders.split(",") if args.orders else sys.stdin:
        seconds, cpu_seconds, losses = [], [], []
        for _ in range(int(order)):
            begin, cpu_begin = time.perf_counter(), time.process_time()
            losses.append(step())
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
            anonymous = max(anonymous, status_bytes("RssAnon"))
        print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "loss": losses[-1],
                          "peak_rss_bytes": status_bytes("VmHWM"), "torch": torch.__version__,
                          "peak_gpu_bytes": torch.cuda.max_memory_allocated() if on_gpu else 0,
                          "anonymous_bytes_after_step": anonymous}), flush=True)


if __name__ == "__main__":
    main()
