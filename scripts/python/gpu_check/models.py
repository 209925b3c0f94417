# SPDX-License-Identifier: Apache-2.0
"""The models whose whole steps are timed, and what divides their speed."""

import array
import dataclasses
import os
import re
import struct

# Token files hold numbers of 16 bits; larger vocabularies are only used in part.
LARGEST_TOKEN = 50257
TOKENS = 4_000_000

# Dense bf16 FLOP/s by data sheet, by words of the GPU's name: the first row all of whose words it
# has. src/device/speed/data_sheet.cpp has the same rows. Others: what was measured.
DATA_SHEET = (
    ("GB200", 2500e12), ("B200", 2250e12), ("H200 NVL", 835.5e12), ("H200", 989.4e12),
    ("GH200", 989.4e12), ("H100 PCIe", 756e12), ("H100 NVL", 835.5e12), ("H100", 989.4e12),
    ("H800 PCIe", 756e12), ("H800", 989.4e12), ("H20", 148e12), ("A100", 312e12),
    ("A800", 312e12), ("A30", 165e12), ("L40S", 362e12), ("L40", 181e12), ("L4", 121e12),
    ("A40", 149.7e12), ("A10", 125e12))


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    architecture: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    seq: int
    batch: int

    @property
    def tokens(self):
        """Of one step."""
        return self.batch * self.seq

    def configuration(self, folder, steps, backend):
        return f"""[model]
architecture = {self.architecture}
vocab_size = {self.vocabulary}
hidden_size = {self.hidden}
intermediate_size = {self.intermediate}
num_hidden_layers = {self.layers}
num_attention_heads = {self.heads}
num_key_value_heads = {self.kv_heads}
max_position_embeddings = {self.seq}
tie_word_embeddings = true
[train]
steps = {steps}
sequence_length = {self.seq}
micro_batch = {self.batch}
global_batch = {self.batch}
[optimizer]
curve = constant
clip_norm = 1
[numerics]
precision = bf16
backend = {backend}
[data]
train = {folder / "tokens"}
[run]
directory = {folder / "run"}
"""


MODELS = (
    Model("gpt2-124m", "gpt2", 768, 12, 12, 12, 3072, 50257, 1024, 32),
    Model("gpt2-350m", "gpt2", 1024, 24, 16, 16, 4096, 50257, 1024, 16),
    Model("llama-1b", "llama", 2048, 16, 32, 8, 8192, 128256, 2048, 8),
    Model("llama-1.5b", "llama", 2048, 26, 16, 8, 5632, 128256, 2048, 8),
)


def data_sheet_flops(GPU):
    names = re.split("[ -]", GPU)
    return next((flops for words, flops in DATA_SHEET if set(words.split()) <= set(names)), None)


def write_tokens(prefix, count=TOKENS):
    """Random tokens as a Megatron token file of one document (docs of trireme data prepare)."""
    tokens = array.array("H", os.urandom(2 * count))
    tokens = array.array("H", (token % LARGEST_TOKEN for token in tokens))
    prefix.with_suffix(".bin").write_bytes(tokens.tobytes())
    uint16_code = 8
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, uint16_code, 1, 2)
    prefix.with_suffix(".idx").write_bytes(head + struct.pack("<iqqq", count, 0, 0, 1))
