"""Trains GPT-2 124M on random tokens when told to: each line on stdin is a number of steps.

Answers each with one JSON line: {"seconds": [...], "peak_rss_bytes", "peak_anonymous_bytes"}.
A worker waits on stdin between orders, so several of them take turns on one machine.
"""

import argparse
import contextlib
import json
import sys
import time

import torch

from gpt2 import GPT2


def status_bytes(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--precision", choices=["bf16", "fp32"], required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = GPT2()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    loss_of = torch.compile(model) if args.mode == "compile" else model
    autocast = (torch.autocast("cpu", dtype=torch.bfloat16) if args.precision == "bf16"
                else contextlib.nullcontext())
    tokens = torch.randint(0, 50257, (args.batch, args.seq + 1))

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    anonymous = 0
    for order in sys.stdin:
        seconds, losses = [], []
        for _ in range(int(order)):
            begin = time.perf_counter()
            losses.append(step())
            seconds.append(time.perf_counter() - begin)
            anonymous = max(anonymous, status_bytes("RssAnon"))
        print(json.dumps({"seconds": seconds, "loss": losses[-1],
                          "peak_rss_bytes": status_bytes("VmHWM"),
                          "anonymous_bytes_after_step": anonymous}), flush=True)


if __name__ == "__main__":
    main()
