#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs docs/first-model.md from its first command to its last, as a reader would.

usage: first_model_test.py --document FILE --trireme FILE --mpirun FILE [--transformers]
  --transformers  runs its blocks of Python too, in scripts/python/model_venv's environment; without,
                  a folder made by hand stands in for the one that transformers writes, and the
                  exported folder's answers are compared with the run's
"""
import argparse
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("document", "trireme", "mpirun"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--transformers", action="store_true")
    return parser.parse_args()


def blocks_of(document):
    found = re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    assert sum(language == "bash" for language, _ in found) >= 10, "the page has lost its commands"
    assert sum(language == "python" for language, _ in found) == 2, "make and read, in Python"
    return found


def run(command, folder, environment):
    """What the command writes to standard output."""
    end = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True,
                         timeout=240, stdin=subprocess.DEVNULL)
    if end.returncode != 0:
        sys.exit(f"{command[-1]}\nended with {end.returncode}\n{end.stdout}\n{end.stderr}")
    # A reader would take a warning for a mistake of his; those of runs tell of the machine.
    is_run = "mpirun" in command[-1]
    assert is_run or " warning " not in end.stderr, (command[-1], end.stderr)
    assert "has come to its minimum" not in end.stderr, end.stderr
    return end.stdout


def environment_with(options, folder):
    """`trireme` and `mpirun -n N` are on the PATH, as the page has them."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "trireme").symlink_to(options.trireme.resolve())
    # The wrapper calls the system's mpirun by its name.
    wrapper = options.mpirun.read_text()
    assert "exec mpirun " in wrapper
    system = subprocess.run(["sh", "-c", "command -v mpirun"], text=True, capture_output=True,
                            check=True).stdout.strip()
    copy = tools / "wrapper"
    copy.write_text(wrapper.replace("exec mpirun ", f"exec {system} "))
    copy.chmod(0o755)
    mpirun = tools / "mpirun"
    mpirun.write_text(f'#!/bin/sh\nshift\nexec "{copy}" "$@"\n')
    mpirun.chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


def stand_in(folder):
    """What the first block of Python writes, without transformers: names, shapes, a normal start."""
    model = folder / "my-model"
    model.mkdir()
    vocabulary, hidden, wide, layers, heads, kv_heads = 280, 48, 96, 2, 4, 2
    width = hidden // heads
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=vocabulary,
                  hidden_size=hidden, intermediate_size=wide, num_hidden_layers=layers,
                  num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=width,
                  max_position_embeddings=128, rms_norm_eps=1e-6, hidden_act="silu",
                  tie_word_embeddings=False, initializer_range=0.02, bos_token_id=None,
                  eos_token_id=0, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer.json").write_text((folder / "tokenizer.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(
        dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>")))
    tensors = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(layers):
        name = f"model.layers.{layer}."
        tensors |= {name + "input_layernorm.weight": (hidden,),
                    name + "self_attn.q_proj.weight": (heads * width, hidden),
                    name + "self_attn.k_proj.weight": (kv_heads * width, hidden),
                    name + "self_attn.v_proj.weight": (kv_heads * width, hidden),
                    name + "self_attn.o_proj.weight": (hidden, heads * width),
                    name + "post_attention_layernorm.weight": (hidden,),
                    name + "mlp.gate_proj.weight": (wide, hidden),
                    name + "mlp.up_proj.weight": (wide, hidden),
                    name + "mlp.down_proj.weight": (hidden, wide)}
    tensors |= {"model.norm.weight": (hidden,), "lm_head.weight": (vocabulary, hidden)}
    pick = random.Random(1)
    header, values = {"__metadata__": {"format": "pt"}}, bytearray()
    for name, shape in tensors.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        numbers = [1.0 if len(shape) == 1 else pick.gauss(0, 0.02) for _ in range(count)]
        begin = len(values)
        values += struct.pack(f"<{count}f", *numbers)
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[begin, len(values)])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + values)


def check_answers(folder, said):
    """The page's sums are right: `said` is what its commands wrote."""
    answers = [json.loads(line) for line in (folder / "answers.jsonl").open()]
    assert [answer["text"].strip() for answer in answers] == ["3", "4", "5", "6", "7"], answers
    shown = re.findall(r"^--- \d\nQuestion: what is (\d) plus (\d)\? Answer: ?(.*)$", said, re.MULTILINE)
    assert shown == [("3", "4", "7"), ("1", "1", "2")], said


def compare_export(folder, environment):
    """The exported folder answers as the run did."""
    answers = [json.loads(line) for line in (folder / "answers.jsonl").open()]
    prompts = folder / "prompts.json"
    prompts.write_text(json.dumps([answer["prompt"] for answer in answers]))
    again = run(["trireme", "generate", "--weights", "exported", "--prompts", str(prompts),
                 "--max-tokens", "8", "--stop", ".", "--json"], folder, environment)
    assert [json.loads(line) for line in again.splitlines()] == answers, (again, answers)
    kept = json.loads((folder / "exported/tokenizer_config.json").read_text())
    assert kept == json.loads((folder / "my-model/tokenizer_config.json").read_text()), kept


def losses(folder):
    lines = [json.loads(line) for line in (folder / "runs/mine/metrics.jsonl").open()]
    return [line for line in lines if line["kind"] == "train"]


def check_run(folder):
    trained = losses(folder)
    assert [line["step"] for line in trained] == list(range(1, 601)), "a step is missing or twice"
    assert trained[-1]["loss"] < 0.5 * trained[0]["loss"], (trained[0], trained[-1])


def main():
    options = arguments()
    blocks = blocks_of(options.document)
    if options.transformers:
        sys.path.insert(0, str(ROOT / "scripts/python"))
        import model_venv

        model_venv.enter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = environment_with(options, folder)
        made = False
        said = ""
        for language, text in blocks:
            if language == "bash":
                said += run(["bash", "-euo", "pipefail", "-c", text], folder, environment)
            elif language == "python" and options.transformers:
                run([sys.executable, "-c", text], folder, environment)
            elif language == "python" and not made:
                stand_in(folder)
                made = True
        check_run(folder)
        check_answers(folder, said)
        compare_export(folder, environment)
    print(f"{len(blocks)} blocks of {options.document.name} did what it says")


if __name__ == "__main__":
    main()
