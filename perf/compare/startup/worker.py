# SPDX-License-Identifier: Apache-2.0
"""One step of a tiny transformer with PyTorch's DistributedDataParallel over gloo."""

import torch
import torch.distributed as dist
from torch import nn


class Tiny(nn.Module):
    def __init__(self, vocabulary=512, hidden=32, layers=4, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        layer = nn.TransformerEncoderLayer(hidden, heads, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(Tiny())
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 512, (1, 33))
    logits = model(tokens[:, :-1])
    nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print("first step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
