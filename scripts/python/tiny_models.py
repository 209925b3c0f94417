# SPDX-License-Identifier: Apache-2.0
"""Tiny random models of the three families, made and computed by transformers; and how far what
`trireme probe` wrote is from them."""
import copy
import json
import os
import pathlib
import subprocess

os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

transformers.utils.logging.disable_progress_bar()

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4


def llama3_scaling(theta, factor, original, low=1.0, high=4.0):
    return {"rope_type": "llama3", "rope_theta": theta, "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": original}


def plain_rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


def rope_settings(rope):
    """Both spellings: transformers 4 reads the first two keys, 5 the third."""
    scaling = None if rope["rope_type"] == "default" else rope
    return {"rope_theta": rope["rope_theta"], "rope_scaling": scaling, "rope_parameters": rope}


def make_config(family, settings):
    settings = dict(settings)
    if "rope" in settings:
        settings.update(rope_settings(settings.pop("rope")))
    classes = {"gpt2": transformers.GPT2Config, "llama": transformers.LlamaConfig,
               "qwen3": transformers.Qwen3Config}
    return classes[family](bos_token_id=0, eos_token_id=0, **settings)


def make_model(family, settings, seed, deviation=0.2):
    """Every parameter random, biases and norms' weights too, so that none can be forgotten."""
    config = make_config(family, settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.randn(parameter.shape, generator=generator) * deviation
            is_norm = "norm" in name or "ln_" in name
            parameter.copy_(1 + value if is_norm and name.endswith("weight") else value)
    return model


def save_model(model, folder):
    # With all settings, so that a reader's defaults are never asked.
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)


def tokens_for(model, batch, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, model.config.vocab_size, (batch, length), generator=generator)


def expected(model, tokens):
    """Name to array: logits, loss, and a gradient for each parameter (tied ones once)."""
    model.zero_grad()
    logits = model(input_ids=tokens).logits
    flat = logits[:, :-1].reshape(-1, logits.shape[-1])
    loss = torch.nn.functional.cross_entropy(flat, tokens[:, 1:].reshape(-1))
    loss.backward()
    tensors = {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    for name, parameter in model.named_parameters():
        tensors["grad/" + name] = parameter.grad.detach()
    return {name: tensor.numpy().copy(order="C") for name, tensor in tensors.items()}


class WithoutNarrowing(torch.overrides.TorchFunctionMode):
    """fp64 stays fp64 where transformers asks for fp32 on the way (norms, softmax)."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(torch.is_tensor(value) and value.dtype == torch.float64 for value in args):
            if function is torch.Tensor.float:
                return args[0]
            args = tuple(torch.float64 if value is torch.float32 else value for value in args)
            kwargs = {name: torch.float64 if value is torch.float32 else value
                      for name, value in kwargs.items()}
        return function(*args, **kwargs)


def exact(model, tokens):
    """What transformers computes of the same parameters in fp64; rotary tables stay the fp32
    numbers that define them."""
    wide = copy.deepcopy(model)
    for parameter in wide.parameters():
        parameter.data = parameter.data.double()
    with WithoutNarrowing():
        return expected(wide, tokens)


def write_expected(tensors, file):
    save_file(tensors, file, metadata={"format": "pt"})


class Distance:
    """How far one tensor is from what transformers computes in fp64, in shares of its largest
    number there; and how far transformers in fp32 is from that itself."""

    def __init__(self, found, plain, exact, smallest):
        scale = max(float(abs(exact).max()), smallest)
        self.ours = float(abs(found - exact).max()) / scale
        self.theirs = float(abs(plain - exact).max()) / scale
        self.apart = float(abs(found.astype(plain.dtype) - plain).max()) / scale

    def within(self):
        """Rounding that a model's own shape magnifies (a norm over two numbers, say) is allowed,
        but no more of it than transformers has in fp32: nothing is excused that fp64 does not
        show to be beyond fp32."""
        return self.ours <= max(TOLERANCE, 2 * self.theirs)


def smallest_scale(exact):
    """fp64 itself leaves noise where a gradient is zero (a layer norm of one number has none):
    below this, a thousand millionth of the model's largest gradient, numbers count as zero."""
    return 1e-9 * max(float(abs(array).max()) for name, array in exact.items()
                      if name.startswith("grad/")) + 1e-30


def distances(found, plain, exact):
    """Name to Distance. Shapes and names must be equal."""
    assert found.keys() == exact.keys(), sorted(found.keys() ^ exact.keys())
    smallest = smallest_scale(exact)
    away = {}
    for name, array in exact.items():
        assert found[name].shape == array.shape, (name, found[name].shape, array.shape)
        assert found[name].dtype == numpy.float32, name
        if name == "loss" and numpy.isnan(array).all():
            assert numpy.isnan(found[name]).all(), "a mean over nothing is NaN"
            continue
        away[name] = Distance(found[name], plain[name], array, smallest)
    return away


def add_draws(away, model, tokens, draws=8):
    """One run of fp32 is one draw of its rounding. More of them, for models that need it: the same
    model with the last bits of its parameters changed. `theirs` becomes the largest."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(draws):
        other = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in other.parameters():
                bits = torch.rand(parameter.shape, generator=generator) - 0.5
                parameter.mul_(1 + 2.0 ** -22 * bits)
        plain, wide = expected(other, tokens), exact(other, tokens)
        for name, distance in distances(plain, plain, wide).items():
            away[name].theirs = max(away[name].theirs, distance.theirs)


def run_trireme(executable, ranks, arguments):
    command = [str(ROOT / "tests/support/mpirun"), str(ranks), str(executable), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{ended.stderr}")
    return ended


def probe(executable, weights, tokens, work, layout, backend="cpu"):
    """What `trireme probe --gradients` writes; layout is (tensor, pipeline, data)."""
    tensor, pipeline, data = layout
    file = work / "tokens.json"
    file.write_text(json.dumps(tokens.tolist()))
    out = work / "probe.safetensors"
    out.unlink(missing_ok=True)
    run_trireme(executable, tensor * pipeline * data,
                ["probe", "--weights", str(weights), "--tokens", str(file), "--out", str(out),
                 "--gradients", "--backend", backend, "--tensor-parallel", str(tensor),
                 "--pipeline-parallel", str(pipeline)])
    return load_file(out)
