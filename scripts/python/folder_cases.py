# SPDX-License-Identifier: Apache-2.0
"""Folders that are ambiguous or incomplete: `trireme probe` reads each as transformers does, or
refuses it by the name of what is wrong."""
import json
import pathlib
import tempfile

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

import tiny_models as tiny

TOLERANCE = 1e-5

SHAPES = {
    "gpt2": dict(n_embd=16, n_layer=2, n_head=4, n_positions=64, vocab_size=61, n_inner=40),
    "llama": dict(hidden_size=24, intermediate_size=30, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, vocab_size=59, max_position_embeddings=64),
    "qwen3": dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, head_dim=10, vocab_size=47, max_position_embeddings=64),
}
LINEAR = {"rope_type": "linear", "factor": 2.5}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
ROPE_KEYS = ("rope_theta", "rope_scaling", "rope_parameters")


def without(settings, *names):
    return {name: value for name, value in settings.items() if name not in names}


# Name, family, changes of config.json (all rope settings are taken away first), and what Trireme
# must say where it refuses the folder; nothing where it must read it as transformers does.
CONFIGS = [
    ("theta beside", "llama", {"rope_theta": 777.0}, None),
    ("theta inside", "llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}, None),
    ("no theta", "llama", {}, None),
    ("null beside theta inside", "llama",
     {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}, None),
    ("theta beside a scaling", "llama", {"rope_theta": 777.0, "rope_scaling": LINEAR}, None),
    ("theta beside parameters", "qwen3", {"rope_theta": 777.0, "rope_parameters": LINEAR}, None),
    ("type alone", "llama", {"rope_scaling": {"type": "linear", "factor": 3}}, None),
    ("no kind is default", "llama", {"rope_scaling": {"factor": 3}}, None),
    ("empty scaling", "llama", {"rope_scaling": {}, "rope_parameters": LINEAR}, None),
    ("both alike", "llama", {"rope_scaling": LINEAR, "rope_parameters": LINEAR}, None),
    ("llama3 without original", "llama", {"rope_scaling": LLAMA3}, None),
    ("llama3 without original", "qwen3", {"rope_parameters": LLAMA3}, None),
    ("llama3 with original beside", "llama",
     {"rope_scaling": LLAMA3, "original_max_position_embeddings": 16}, None),
    ("llama3 with original", "llama",
     {"rope_scaling": dict(LLAMA3, original_max_position_embeddings=16)}, None),
    ("fields of yarn", "llama", {"rope_scaling": dict(LINEAR, attention_factor=2.0, mscale=3.0)}, None),
    ("head_dim null", "llama", {"head_dim": None}, None),
    ("key heads null", "llama", {"num_key_value_heads": None}, "shape"),
    ("other names", "gpt2", {"n_embd": ..., "hidden_size": 16, "n_layer": ..., "num_hidden_layers": 2},
     None),
    ("n_inner null", "gpt2", {"n_inner": None}, "shape"),
    ("dtypes that differ", "llama", {"torch_dtype": "float16", "dtype": "float32"}, None),
    ("epsilon of another family", "llama", {"layer_norm_epsilon": 0.5}, None),
    ("windows that do not count", "qwen3", {"sliding_window": 4, "max_window_layers": 0}, None),
    ("all layers full", "qwen3", {"layer_types": ["full_attention"] * 2}, None),
    ("settings of generation", "llama", {"temperature": 0.5, "repetition_penalty": 1.5}, None),
    ("llama3 without factor", "llama", {"rope_scaling": without(LLAMA3, "factor")}, "factor"),
    ("llama3 without a band", "llama", {"rope_scaling": without(LLAMA3, "low_freq_factor")},
     "low_freq_factor"),
    ("llama3 without a band", "qwen3", {"rope_parameters": without(LLAMA3, "high_freq_factor")},
     "high_freq_factor"),
    ("linear without factor", "llama", {"rope_scaling": {"type": "linear"}}, "factor"),
    ("kind null", "llama", {"rope_scaling": {"rope_type": None, "factor": 2}}, "rope_type"),
    ("theta twice", "llama", {"rope_theta": 7.0, "rope_parameters": dict(LINEAR, rope_theta=8.0)},
     "rope_theta"),
    ("scaling twice", "llama", {"rope_scaling": LINEAR, "rope_parameters": {"rope_type": "default"}},
     "rope_scaling and rope_parameters"),
    ("part of a head", "llama", {"rope_scaling": dict(LINEAR, partial_rotary_factor=0.5)},
     "partial_rotary_factor"),
    ("layers that differ", "llama", {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}},
     "per_layer_config"),
    ("names that differ", "gpt2", {"hidden_size": 32}, "hidden_size"),
    ("layers with a window", "qwen3", {"use_sliding_window": True, "sliding_window": 4,
                                       "max_window_layers": 0}, "use_sliding_window"),
    ("key heads 0", "llama", {"num_key_value_heads": 0}, "num_key_value_heads = 0"),
    ("key heads 3", "llama", {"num_key_value_heads": 3}, "num_key_value_heads = 3"),
]


def make_folder(family, folder, tied=False):
    settings = dict(SHAPES[family], tie_word_embeddings=tied)
    if family != "gpt2":
        settings["rope"] = tiny.plain_rope(10000.0)
    tiny.save_model(tiny.make_model(family, settings, 1, deviation=0.3), folder)


def change_config(folder, changes):
    path = folder / "config.json"
    config = without(json.loads(path.read_text()), *ROPE_KEYS)
    for key, value in changes.items():
        if value is ...:
            config.pop(key)
        else:
            config[key] = value
    path.write_text(json.dumps(config))


def tied_folder(folder, change):
    make_folder("llama", folder, tied=True)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = change(weights["model.embed_tokens.weight"].copy())
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def negated_row(table):
    table[7] *= -1
    return table


def stale_index(folder):
    make_folder("llama", folder)
    weights = load_file(folder / "model.safetensors")
    other = {name: numpy.zeros_like(array) for name, array in weights.items()}
    save_file(other, folder / "model-00001-of-00001.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {name: "model-00001-of-00001.safetensors" for name in other}}))


def base_model(folder):
    make_folder("llama", folder, tied=True)
    weights = load_file(folder / "model.safetensors")
    save_file({name.removeprefix("model."): array for name, array in weights.items()},
              folder / "model.safetensors", metadata={"format": "pt"})


# Name, what makes the folder, and as above.
WEIGHTS = [
    ("a tied head that is equal", lambda folder: tied_folder(folder, lambda table: table), None),
    ("a tied head that differs", lambda folder: tied_folder(folder, negated_row),
     "tie_word_embeddings"),
    ("one file beside an index", stale_index, None),
    ("names of a base model", base_model, None),
]


def logits_of_transformers(folder, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        return model.eval()(input_ids=tokens).logits.numpy()


def compare(name, folder, refusal, executable):
    """Nothing, or what is wrong."""
    tokens = torch.randint(0, 40, (2, 50), generator=torch.Generator().manual_seed(5))
    file, out = folder.parent / "tokens.json", folder.parent / "probe.safetensors"
    file.write_text(json.dumps(tokens.tolist()))
    try:
        tiny.run_trireme(executable, 1, ["probe", "--weights", str(folder), "--tokens", str(file),
                                         "--out", str(out)])
    except RuntimeError as error:
        if refusal is None:
            return f"{name}: refused: {error}"
        return None if refusal in str(error) else f"{name}: does not say {refusal}: {error}"
    if refusal is not None:
        return f"{name}: read, though {refusal}"
    found, expected = load_file(out)["logits"], logits_of_transformers(folder, tokens)
    distance = float(abs(found - expected).max() / abs(expected).max())
    print(f"{name:40} logits {distance:.1e}", flush=True)
    return None if distance <= TOLERANCE else f"{name}: logits {distance:.1e} apart"


def compare_all(executable):
    """The number of folders that are neither read as transformers reads them nor refused by name."""
    cases = [(f"{family}: {name}", lambda folder, family=family, changes=changes: (
        make_folder(family, folder), change_config(folder, changes)), refusal)
        for name, family, changes, refusal in CONFIGS]
    wrong = []
    for name, make, refusal in cases + WEIGHTS:
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work) / "model"
            make(folder)
            said = compare(name, folder, refusal, executable)
        if said:
            wrong.append(said)
            print(f"FAILED {said}", flush=True)
    refused = sum(case[2] is not None for case in cases + WEIGHTS)
    print(f"{len(cases) + len(WEIGHTS)} folders: {refused} to be refused, {len(wrong)} failed")
    return len(wrong)
