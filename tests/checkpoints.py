"""Checkpoints with small random networks around real tokenizer files, and the command that builds packs of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from tests.paths import ROOT

TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json")

_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def write_checkpoint(folder: Path, tokenizer_files: Path, **changes: Any) -> Path:
    """A checkpoint of one encoder and two decoder layers with d_model 16; `changes` go into its config."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        shutil.copy(tokenizer_files / name, folder / name)
        (folder / name).chmod(0o644)
    config = json.loads((tokenizer_files / "config.json").read_text("utf-8")) | {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 40,
        "max_position_embeddings": 64,
        "max_length": 64,
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(random_weights(config), folder / "model.safetensors")
    return folder


def random_weights(config: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Weights under transformers' names; spread widely enough that greedy output varies."""
    random = np.random.default_rng(1)
    d_model = config["d_model"]

    def normal(*shape: int, scale: float = 1.0) -> NDArray[np.float32]:
        return random.normal(0, scale / np.sqrt(shape[-1]), shape).astype(np.float32)

    # Cross-attention speaks loudest, so that the output follows the source and not itself.
    scales = {"q_proj": 4.0, "k_proj": 4.0, "encoder_attn.out_proj": 8.0}
    weights = {
        "model.shared.weight": normal(config["vocab_size"], d_model),
        "final_logits_bias": normal(1, config["vocab_size"]),
    }
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        ffn_dim = config[f"{stack}_ffn_dim"]
        for index in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{index}"
            linears = {f"{a}.{p}": (d_model, d_model) for a in attentions for p in _PROJECTIONS}
            linears |= {"fc1": (ffn_dim, d_model), "fc2": (d_model, ffn_dim)}
            for name, shape in linears.items():
                scale = next((scales[end] for end in scales if name.endswith(end)), 1.0)
                weights[f"{layer}.{name}.weight"] = normal(*shape, scale=scale)
                weights[f"{layer}.{name}.bias"] = normal(shape[0])
            for name in [*(f"{a}_layer_norm" for a in attentions), "final_layer_norm"]:
                weights[f"{layer}.{name}.weight"] = 1 + normal(d_model)
                weights[f"{layer}.{name}.bias"] = normal(d_model)
    return weights


def build(checkpoint: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "model_pack", "build", "--checkpoint", str(checkpoint), "--out", str(out)]
    return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def assert_refused(done: subprocess.CompletedProcess[str], words: str, folder: Path) -> None:
    """Exit status 2, the words, no traceback, and nothing written."""
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["checkpoint"]


def weights_of(pack: Path) -> bytes:
    return (pack / "weights.bin").read_bytes()
